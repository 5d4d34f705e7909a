// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/status"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// statusInterval is the time between two looks of `status --wait`, each of which
// asks all controllers, and of two outputs of `status --watch`.
const statusInterval = 2 * time.Second

func newStatus(o *options) *cobra.Command {
	var wait, watch bool
	command := &cobra.Command{
		Use:   "status",
		Short: "Show members, imports and findings",
		Example: `  kubectl clusterset status --contexts east,west
  kubectl clusterset status --contexts east,west --wait --timeout 5m`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := output.Validate(o.output); err != nil {
				return usageError{err}
			}
			if watch && wait {
				return usageError{errors.New("--watch and --wait exclude each other")}
			}
			if command.Flags().Changed("timeout") && !wait {
				return usageError{errors.New("--timeout needs --wait")}
			}
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			for watch {
				statuses, err := o.statuses(command.Context(), clusters, false)
				if command.Context().Err() != nil {
					return nil
				}
				if err = errors.Join(err, o.printStatuses(statuses)); err != nil {
					return err
				}
				fmt.Fprintln(o.Out)
				select {
				case <-command.Context().Done():
				case <-time.After(statusInterval):
				}
			}
			statuses, err := o.statuses(command.Context(), clusters, wait)
			unreached := 0
			for _, each := range statuses {
				if each.Unreachable != "" {
					unreached++
				}
			}
			if err == nil && unreached > 0 {
				err = fmt.Errorf("the controllers of %d of %d clusters do not answer", unreached, len(clusters))
			}
			return errors.Join(o.printStatuses(statuses), err)
		},
	}
	command.Flags().BoolVar(&wait, "wait", false,
		"wait until the members are fresh and up to date, and the imports are ready")
	command.Flags().BoolVarP(&watch, "watch", "w", false, "print the status every 2 s until Ctrl-C")
	o.addContexts(command)
	o.addOutput(command)
	o.addController(command.Flags())
	o.addNamespace(command, "show the imports of this `namespace` alone")
	o.addWait(command.Flags())
	return command
}

// statuses looks at the clusters, if wait is set until nothing is pending. What
// was seen last is returned along with an error.
func (o *options) statuses(ctx context.Context, clusters []*cluster.Cluster, wait bool) ([]status.Status, error) {
	statuses, namespace := []status.Status{}, o.overrides.Context.Namespace
	look := func(ctx context.Context) (string, error) {
		all, failed := o.states(ctx, clusters)
		if wait && ctx.Err() != nil {
			return "", ctx.Err() // what the end of the wait cut off says nothing
		}
		statuses = statusesOf(clusters, all, failed, namespace)
		return strings.Join(status.Pending(statuses), "; "), nil
	}
	if !wait {
		_, err := look(ctx)
		return statuses, err
	}
	teller := o.teller()
	teller.Interval = statusInterval
	err := teller.Wait(ctx, look)
	return statuses, err
}

func (o *options) printStatuses(statuses []status.Status) error {
	return output.Print(o.Out, o.output, "Status", map[string]any{"clusters": statuses},
		func(out io.Writer, wide bool) error { return printStatuses(out, wide, statuses) })
}

// statusesOf are what the controllers of the clusters said, or why they did not.
func statusesOf(clusters []*cluster.Cluster, all []*state.Cluster, failed []error, namespace string) []status.Status {
	statuses := make([]status.Status, len(clusters))
	for i, c := range clusters {
		statuses[i] = status.Status{Context: c.Context, Cluster: all[i]}.In(namespace)
		if failed[i] != nil {
			statuses[i].Unreachable = failed[i].Error()
		}
	}
	return statuses
}

func printStatuses(out io.Writer, wide bool, statuses []status.Status) error {
	for i, each := range statuses {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := each.Text(out, wide); err != nil {
			return err
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/status"
	"github.com/clusterset-dns/clusterset-dns/cmd/version"
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
		Args: cobra.ExactArgs(0),
		RunE: func(command *cobra.Command, _ []string) error {
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
			ctx := command.Context()
			statuses, failed := []status.Status{}, []error{}
			look := func(ctx context.Context) (string, error) {
				found, missed := o.states(ctx, clusters)
				if ctx.Err() != nil {
					return "", ctx.Err() // what the end of the wait cut off says nothing
				}
				statuses, failed = statusesOf(clusters, found, missed, o.overrides.Context.Namespace), missed
				return strings.Join(status.Pending(statuses), "; "), nil
			}
			show := func() error {
				return output.Print(o.Out, o.output, "Status", map[string]any{"clusters": statuses}, texts(statuses))
			}
			for watch && ctx.Err() == nil {
				if _, err := look(ctx); err == nil {
					if err := show(); err != nil {
						return err
					}
					fmt.Fprintln(o.Out)
				}
				select {
				case <-ctx.Done():
				case <-time.After(statusInterval):
				}
			}
			if watch {
				return nil
			}
			if wait {
				teller := o.teller()
				teller.Interval = statusInterval
				err = teller.Wait(ctx, look)
			} else {
				_, err = look(ctx)
			}
			if err == nil {
				err = unanswered(failed)
			}
			return errors.Join(show(), err)
		},
	}
	command.Flags().BoolVar(&wait, "wait", false,
		"wait until the members are fresh and up to date, and the imports are ready")
	command.Flags().BoolVarP(&watch, "watch", "w", false, "print the status every 2 s until Ctrl-C")
	o.addNamespace(command, "show the imports of this `namespace` alone")
	return o.with(command, "contexts", "output", "controller", "timeout")
}

// unanswered returns an error if controllers did not answer, which the output has.
func unanswered(failed []error) error {
	wrong := slices.DeleteFunc(slices.Clone(failed), func(err error) bool { return err == nil })
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("the controllers of %d of %d clusters do not answer", len(wrong), len(failed))
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

func newVersion(o *options) *cobra.Command {
	client := false
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program and of the controllers",
		Example: `  kubectl clusterset version --client
  kubectl clusterset version --contexts east,west -o json`,
		Args: cobra.ExactArgs(0),
		RunE: func(command *cobra.Command, _ []string) (err error) {
			var clusters []*cluster.Cluster
			if !client {
				if clusters, err = o.clusters(); err != nil {
					return err
				}
			}
			all, failed := o.states(command.Context(), clusters)
			document, text := versionsOf(clusters, all, failed)
			err = output.Print(o.Out, o.output, "Version", document, func(out io.Writer, _ bool) error {
				_, err := io.WriteString(out, text)
				return err
			})
			return errors.Join(err, unanswered(failed))
		},
	}
	command.Flags().BoolVar(&client, "client", false, "print the version of this program alone, and contact no cluster")
	return o.with(command, "contexts", "output", "controller")
}

// versionsOf returns the versions that the controllers said, or why they did not, and the same as text.
func versionsOf(clusters []*cluster.Cluster, all []*state.Cluster, failed []error) (document map[string]any, text string) {
	found := []map[string]string{}
	text = "Client: " + version.Of(build) + "\n"
	for i, c := range clusters {
		is := map[string]string{"context": c.Context}
		if failed[i] != nil {
			is["unreachable"] = failed[i].Error()
			text += "Context " + c.Context + ": unknown: " + failed[i].Error() + "\n"
		} else {
			is["controller"] = all[i].Controller
			text += "Context " + c.Context + ": " + all[i].Controller + "\n"
		}
		found = append(found, is)
	}
	return map[string]any{"client": version.Of(build), "clusters": found}, text
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/explain"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/status"
)

// gather looks at all clusters at once, and asks their members in a namespace,
// in all where it is empty. The facts are nil of a cluster that does not
// answer; the error of the same place says why.
func gather(ctx context.Context, clusters []*cluster.Cluster, namespace string) ([]*facts.Facts, []error) {
	all, failed := make([]*facts.Facts, len(clusters)), make([]error, len(clusters))
	var group sync.WaitGroup
	for i, c := range clusters {
		group.Go(func() { all[i], failed[i] = facts.Gather(ctx, c, namespace) })
	}
	group.Wait()
	var known []*facts.Facts
	for _, f := range all {
		if f != nil {
			known = append(known, f)
		}
	}
	for _, f := range known {
		f.Ask(ctx, namespace, known)
	}
	return all, failed
}

func newStatus(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "status",
		Short: "Show members, imports and conflicts",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := output.Validate(o.output); err != nil {
				return usageError{err}
			}
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			all, failed := gather(command.Context(), clusters, "")
			statuses := make([]status.Status, len(clusters))
			unreached := 0
			for i, f := range all {
				if failed[i] != nil {
					statuses[i] = status.Unreached(clusters[i].Context, failed[i])
					unreached++
					continue
				}
				statuses[i] = status.Of(f, o.overrides.Context.Namespace)
			}
			err = output.Print(o.Out, o.output, "Status", map[string]any{"clusters": statuses},
				func(out io.Writer, wide bool) error {
					for i, each := range statuses {
						if i > 0 {
							fmt.Fprintln(out)
						}
						if err := each.Text(out, wide); err != nil {
							return err
						}
					}
					return nil
				})
			if err == nil && unreached > 0 {
				err = fmt.Errorf("%d of %d clusters are unreachable", unreached, len(clusters))
			}
			return err
		},
	}
	o.addContexts(command)
	o.addOutput(command)
	o.addNamespace(command, "show the imports and exports of this `namespace` alone")
	return command
}

func newExplain(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "explain [NAMESPACE/]SERVICE",
		Short: "Explain what a service resolves to",
		Long: `Explain what a service resolves to in a cluster, the first of --contexts: which
clusters export it, which export wins if they disagree, which endpoints are used,
demoted or refused and why, and what DNS answers now.`,
		Example:           `  kubectl clusterset explain shop/db --contexts east,west`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: o.completeServices,
		RunE: func(command *cobra.Command, args []string) error {
			if err := output.Validate(o.output); err != nil {
				return usageError{err}
			}
			service, err := o.service(args[0])
			if err != nil {
				return err
			}
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			all, failed := gather(command.Context(), clusters, service.Namespace)
			if failed[0] != nil {
				return fmt.Errorf("context %s: %w", clusters[0].Context, failed[0])
			}
			explanation := explain.Of(all[0], service, o.zone)
			for i, err := range failed[1:] {
				if err != nil {
					explanation.Problems = append(explanation.Problems,
						explain.Problem{What: fmt.Sprintf("Context %s was not reached: %v", clusters[i+1].Context,
							err)})
				}
			}
			o.ask(command.Context(), clusters[0], explanation)
			return output.Print(o.Out, o.output, "Explanation", explanation, explanation.Text)
		},
	}
	o.addContexts(command)
	o.addOutput(command)
	o.addZone(command.Flags())
	o.addDNS(command.Flags())
	o.addNamespace(command, serviceNamespace)
	return command
}

// server is the DNS that the flags name, or a pod of it.
func (o *options) server(ctx context.Context, c *cluster.Cluster) (*dns.Server, error) {
	for _, text := range o.dns {
		if address, ok := strings.CutPrefix(text, c.Context+"="); ok {
			return dns.At(address), nil
		}
	}
	for _, text := range o.dns {
		if !strings.Contains(text, "=") {
			return dns.At(text), nil
		}
	}
	return dns.InCluster(ctx, c)
}

// ask adds what DNS says to an explanation.
func (o *options) ask(ctx context.Context, c *cluster.Cluster, explanation *explain.Explanation) {
	server, err := o.server(ctx, c)
	if err != nil {
		explanation.Unanswered(err)
		return
	}
	defer server.Close()
	for _, kind := range explanation.Types() {
		answer, err := server.Ask(ctx, explanation.Name, kind)
		if err != nil {
			explanation.Unanswered(err)
			return
		}
		explanation.Answered(server.Name, answer)
	}
}

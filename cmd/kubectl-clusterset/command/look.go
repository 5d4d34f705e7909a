// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/explain"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/facts"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
)

// gather reads all clusters at once, and what their members publish in a
// namespace, or in all if it is empty. The facts of an unreachable cluster are
// nil, and the error with the same index is not.
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
						explain.Problem{What: fmt.Sprintf("Context %s is unreachable: %v", clusters[i+1].Context,
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

// server is the DNS server that the flags set, or else a pod of the cluster's DNS.
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

// ask queries DNS for an explanation.
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

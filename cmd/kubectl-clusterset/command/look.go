// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/explain"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/leading"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// each calls do for all clusters at once.
func each(clusters []*cluster.Cluster, do func(i int, c *cluster.Cluster)) {
	var group sync.WaitGroup
	for i, c := range clusters {
		group.Go(func() { do(i, c) })
	}
	group.Wait()
}

// states asks the controllers of all clusters at once. The state of a cluster that does not answer is nil, and the error
// with the same index is not.
func (o *options) states(ctx context.Context, clusters []*cluster.Cluster) ([]*state.Cluster, []error) {
	all, failed := make([]*state.Cluster, len(clusters)), make([]error, len(clusters))
	each(clusters, func(i int, c *cluster.Cluster) {
		all[i], failed[i] = leading.Status(ctx, c, addressOf(o.controllers, c.Context))
		if failed[i] != nil {
			all[i] = nil
		}
	})
	contexts := map[string]string{}
	for i, c := range clusters {
		if all[i] != nil {
			contexts[all[i].Cluster] = c.Context
		}
	}
	for _, known := range all {
		if known != nil {
			fill(known.Findings, contexts)
		}
	}
	return all, failed
}

// fill puts the contexts of clusters into findings.
func fill(findings []state.Finding, contexts map[string]string) {
	var pairs []string
	for id, context := range contexts {
		pairs = append(pairs, "<context of "+id+">", context)
	}
	replacer := strings.NewReplacer(pairs...)
	for i := range findings {
		findings[i].Fix = replacer.Replace(findings[i].Fix)
	}
}

func newExplain(o *options) *cobra.Command {
	command := &cobra.Command{
		Use:   "explain [NAMESPACE/]SERVICE",
		Short: "Explain what a service resolves to",
		Long: `Explain what a service resolves to in each selected cluster: which clusters export it,
which export wins if they disagree, which endpoints are used, demoted or refused and why,
and what DNS answers now.`,
		Example: `  kubectl clusterset explain shop/db --contexts east,west
  kubectl clusterset explain shop/db --context east -o json`,
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
			ctx := command.Context()
			all, failed := make([]*explain.Explanation, len(clusters)), make([]error, len(clusters))
			each(clusters, func(i int, c *cluster.Cluster) {
				known, err := leading.Explain(ctx, c, addressOf(o.controllers, c.Context), service.String())
				if err != nil {
					failed[i] = fmt.Errorf("context %s: %w", c.Context, err)
					return
				}
				all[i] = explain.Of(c.Context, o.zone, known)
				o.ask(ctx, c, all[i])
			})
			contexts, explained := map[string]string{}, []*explain.Explanation{}
			for i, c := range clusters {
				if all[i] != nil {
					contexts[all[i].Cluster] = c.Context
					explained = append(explained, all[i])
				}
			}
			for _, explanation := range explained {
				fill(explanation.Problems, contexts)
			}
			return errors.Join(output.Print(o.Out, o.output, "ExplanationList", map[string]any{"clusters": explained},
				func(out io.Writer, wide bool) error {
					for i, explanation := range explained {
						if i > 0 {
							fmt.Fprintln(out)
						}
						if err := explanation.Text(out, wide); err != nil {
							return err
						}
					}
					return nil
				}), errors.Join(failed...))
		},
	}
	o.addContexts(command)
	o.addOutput(command)
	o.addZone(command.Flags())
	o.addDNS(command.Flags())
	o.addController(command.Flags())
	o.addNamespace(command, serviceNamespace)
	return command
}

// addressOf is the address of a context among those of a flag, as [CONTEXT=]ADDRESS; empty if there is none.
func addressOf(texts []string, context string) string {
	for _, text := range texts {
		if address, ok := strings.CutPrefix(text, context+"="); ok {
			return address
		}
	}
	for _, text := range texts {
		if !strings.Contains(text, "=") {
			return text
		}
	}
	return ""
}

// server is the DNS server that the flags set, or else a pod of the cluster's DNS.
func (o *options) server(ctx context.Context, c *cluster.Cluster) (*dns.Server, error) {
	if address := addressOf(o.dns, c.Context); address != "" {
		return dns.At(address), nil
	}
	return dns.InCluster(ctx, c)
}

// ask queries DNS for an explanation.
func (o *options) ask(ctx context.Context, c *cluster.Cluster, explanation *explain.Explanation) {
	server, err := o.server(ctx, c)
	if err != nil {
		explanation.Problem("dns-reachable", "Set the address of the cluster's DNS with --dns.", "DNS was not queried: %v.", err)
		return
	}
	defer server.Close()
	for _, kind := range explanation.Types() {
		answer, err := server.Ask(ctx, explanation.Name, kind)
		if err != nil {
			explanation.Problem("dns-reachable", "Set the address of the cluster's DNS with --dns.", "DNS was not queried: %v.", err)
			return
		}
		explanation.Answered(server.Name, answer)
	}
}

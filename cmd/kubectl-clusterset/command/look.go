// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
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
	each(clusters, func(i int, c *cluster.Cluster) { all[i], failed[i] = o.state(ctx, c) })
	contexts, findings := map[string]string{}, [][]state.Finding{}
	for i, known := range all {
		if known != nil {
			contexts[known.Cluster], findings = clusters[i].Context, append(findings, known.Findings)
		}
	}
	fill(findings, contexts)
	return all, failed
}

// state asks the controller of a cluster. The state is nil along with an error.
func (o *options) state(ctx context.Context, c *cluster.Cluster) (*state.Cluster, error) {
	return leading.Status(ctx, c, addressOf(o.controllers, c.Context))
}

// texts returns what writes values with empty lines between them.
func texts[T interface {
	Text(out io.Writer, wide bool) error
}](values []T) func(out io.Writer, wide bool) error {
	return func(out io.Writer, wide bool) error {
		for i, value := range values {
			if i > 0 {
				fmt.Fprintln(out)
			}
			if err := value.Text(out, wide); err != nil {
				return err
			}
		}
		return nil
	}
}

// fill puts the contexts of clusters into findings.
func fill(findings [][]state.Finding, contexts map[string]string) {
	var pairs []string
	for id, context := range contexts {
		pairs = append(pairs, "<context of "+id+">", context)
	}
	replacer := strings.NewReplacer(pairs...)
	for _, of := range findings {
		for i := range of {
			of[i].Fix = replacer.Replace(of[i].Fix)
		}
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
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, args []string) error {
			service, err := o.service(args[0])
			if err != nil {
				return err
			}
			clusters, err := o.clusters()
			if err != nil {
				return err
			}
			all, failed := make([]*explain.Explanation, len(clusters)), make([]error, len(clusters))
			each(clusters, func(i int, c *cluster.Cluster) {
				known, err := leading.Explain(command.Context(), c, addressOf(o.controllers, c.Context), service.String())
				if err != nil {
					failed[i] = fmt.Errorf("context %s: %w", c.Context, err)
					return
				}
				all[i] = explain.Of(c.Context, o.zone, known)
				if err := o.ask(command.Context(), c, all[i]); err != nil {
					all[i].Problem("dns-reachable", "Set the address of the cluster's DNS with --dns.", "DNS was not queried: %v.", err)
				}
			})
			all = slices.DeleteFunc(all, func(e *explain.Explanation) bool { return e == nil })
			contexts, problems := map[string]string{}, [][]state.Finding{}
			for _, explained := range all {
				contexts[explained.Cluster], problems = explained.Context, append(problems, explained.Problems)
			}
			fill(problems, contexts)
			err = output.Print(o.Out, o.output, "ExplanationList", map[string]any{"clusters": all}, texts(all))
			return errors.Join(err, errors.Join(failed...))
		},
	}
	o.addNamespace(command, serviceNamespace)
	return o.with(command, "contexts", "output", "zone", "dns", "controller")
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
func (o *options) ask(ctx context.Context, c *cluster.Cluster, explanation *explain.Explanation) error {
	server, err := o.server(ctx, c)
	if err != nil {
		return err
	}
	defer server.Close()
	for _, kind := range explanation.Types() {
		answer, err := server.Ask(ctx, explanation.Name, kind)
		if err != nil {
			return err
		}
		explanation.Answered(server.Name, answer)
	}
	return nil
}

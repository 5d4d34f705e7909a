// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/diagnosis"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// states asks the controllers of all clusters at once. The state of a cluster that does not answer is nil, and the error
// with the same index is not.
func states(ctx context.Context, clusters []*cluster.Cluster) ([]*state.Cluster, []error) {
	all, failed := make([]*state.Cluster, len(clusters)), make([]error, len(clusters))
	cluster.Each(clusters, func(i int, c *cluster.Cluster) { all[i], failed[i] = c.State(ctx) })
	var answers []answer
	for i, known := range all {
		if known != nil {
			answers = append(answers, answer{known.Cluster, clusters[i].Context, known.Findings})
		}
	}
	fill(answers)
	return all, failed
}

// texts returns what writes values with empty lines between them.
func texts[T interface {
	Text(out io.Writer, wide bool) error
}](values []T) func(out io.Writer, wide bool) error {
	return func(out io.Writer, wide bool) (err error) {
		for i := 0; i < len(values) && err == nil; i++ {
			if i > 0 {
				fmt.Fprintln(out)
			}
			err = values[i].Text(out, wide)
		}
		return err
	}
}

// An answer is that of the controller of a cluster, as far as fill needs it.
type answer struct {
	id, context string
	findings    []state.Finding
}

// fill puts contexts into the fixes: into those of an answer its own context for its id, and for another id that of the
// only answer with it.
func fill(answers []answer) {
	contexts := map[string][]string{}
	for _, each := range answers {
		contexts[each.id] = append(contexts[each.id], each.context)
	}
	for _, each := range answers {
		pairs := []string{"<context of " + each.id + ">", each.context}
		for id, of := range contexts {
			if id != each.id && len(of) == 1 {
				pairs = append(pairs, "<context of "+id+">", of[0])
			}
		}
		replacer := strings.NewReplacer(pairs...)
		for i := range each.findings {
			each.findings[i].Fix = replacer.Replace(each.findings[i].Fix)
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
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			service, clusters, err := o.service(args[0])
			if err != nil {
				return err
			}
			all, failed := make([]*diagnosis.Explanation, len(clusters)), make([]error, len(clusters))
			cluster.Each(clusters, func(i int, c *cluster.Cluster) {
				known, question := &state.Explanation{}, state.PathExplain+"?service="+url.QueryEscape(service.String())
				if err := c.Ask(command.Context(), question, known); err != nil {
					failed[i] = fmt.Errorf("context %s: %w", c.Context, err)
					return
				}
				all[i] = diagnosis.Explain(command.Context(), c, o.zone, known)
			})
			all = slices.DeleteFunc(all, func(e *diagnosis.Explanation) bool { return e == nil })
			var answers []answer
			for _, explained := range all {
				answers = append(answers, answer{explained.Cluster, explained.Context, explained.Problems})
			}
			fill(answers)
			err = diagnosis.Print(o.Out, o.output, "ExplanationList", map[string]any{"clusters": all}, texts(all))
			return errors.Join(err, errors.Join(failed...))
		},
	}
	o.addNamespace(command, serviceNamespace)
	return o.with(command, "contexts", "output", "zone", "dns", "controller")
}

// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
)

// always are the properties that are shown even without a conflict.
var always = map[string]bool{"type": true, "ports": true}

// Text writes the explanation as text. Wide output has all properties, and zones and hints of endpoints.
func (e *Explanation) Text(out io.Writer, wide bool) error {
	fmt.Fprintf(out, "%s in cluster %s: %s\n\n%s\n", e.Service, e.Cluster, e.Name, e.Summary)

	first := "oldest"
	if e.Ranked {
		first = "first-ranked"
	}
	var rows [][]any
	headings := "CLUSTER SINCE STATE USED DEMOTED OTHER +RULES"
	for i, each := range e.Exports {
		since := "-"
		if !each.Since.IsZero() {
			since = each.Since.UTC().Format(time.RFC3339)
		}
		if i == 0 && !each.Since.IsZero() && len(e.Exports) > 1 {
			since += " (" + first + ")"
		}
		if len(each.Rules) > 0 {
			headings = "CLUSTER SINCE STATE USED DEMOTED OTHER RULES"
		}
		rows = append(rows, []any{
			each.Cluster, since, each.State, each.Used, each.Demoted, each.Other, output.Dash(strings.Join(each.Rules, ", ")),
		})
	}
	if err := section(out, wide, "Exports", headings, rows); err != nil {
		return err
	}

	rows = nil
	for _, property := range e.Properties {
		if wide || always[property.Field] || property.Field == "exportedAnnotations" && property.Value != "" || len(property.Dissent) > 0 {
			from := property.From
			switch {
			case len(property.Dissent) == 0 && len(e.Exports) > 1:
				from = "all clusters"
			case len(property.Dissent) > 0 && property.Field == "ports":
				from = "all clusters, " + property.From + " first"
			case len(property.Dissent) > 0:
				from += " (" + first + ")"
			}
			rows = append(rows, []any{
				property.Field, output.Dash(property.Value), from,
				output.Dash(strings.Join(property.Dissent, "; ")),
			})
		}
	}
	if err := section(out, wide, "Properties", "PROPERTY VALUE FROM CONFLICTS", rows); err != nil {
		return err
	}

	rows = nil
	for _, condition := range e.Conditions {
		_, name, _ := strings.Cut(condition.Type, "/")
		rows = append(rows, []any{name, condition.Status, condition.Reason, condition.Message})
	}
	if err := section(out, wide, "Preferences", "CONDITION STATUS REASON MESSAGE", rows); err != nil {
		return err
	}

	rows = nil
	for _, endpoint := range e.Endpoints {
		rows = append(rows, []any{
			endpoint.Address, endpoint.Cluster, endpoint.State, endpoint.Reason, output.Dash(endpoint.Zone),
			output.Dash(strings.Join(endpoint.HintedFor, ", ")),
		})
	}
	if err := section(out, wide, "Endpoints", "ADDRESS CLUSTER STATE REASON +ZONE +HINTED_FOR", rows); err != nil {
		return err
	}

	if len(e.Answers) > 0 {
		fmt.Fprintf(out, "\nDNS (queried at %s)\n", e.Server)
	}
	for _, answer := range e.Answers {
		verdict := "correct"
		switch {
		case answer.Wrong:
			verdict = "WRONG, expected " + answer.ExpectedText()
		case answer.Part:
			verdict = "correct: a part of " + strings.Join(answer.Expected, " ")
		case e.Import == nil && answer.Rcode == "NXDOMAIN":
			verdict = "correct: not imported here"
		case answer.Rcode == "NXDOMAIN":
			verdict = "correct: no endpoint is ready"
		}
		fmt.Fprintf(out, "%s %s: %s (%s)\n", answer.Name, answer.Type, answer.Text(), verdict)
	}

	if len(e.Problems) == 0 {
		_, err := fmt.Fprintln(out, "\nNo problems found.")
		return err
	}
	fmt.Fprintln(out, "\nProblems")
	for _, problem := range e.Problems {
		fmt.Fprintf(out, "- %s\n", problem.What)
		if problem.Fix != "" {
			fmt.Fprintf(out, "  > %s\n", problem.Fix)
		}
	}
	return nil
}

func section(out io.Writer, wide bool, title, headings string, rows [][]any) error {
	if len(rows) > 0 {
		fmt.Fprintf(out, "\n%s\n", title)
	}
	return output.Table(out, wide, headings, rows)
}

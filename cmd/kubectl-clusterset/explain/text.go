// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
)

// always are the properties that are shown although all clusters agree.
var always = map[string]bool{"type": true, "ports": true}

// Text writes the explanation for people. Wide output has all properties.
func (e *Explanation) Text(out io.Writer, wide bool) error {
	fmt.Fprintf(out, "%s in cluster %s\n\n%s\n", e.Service, e.Cluster, e.Summary)

	first := "oldest"
	if e.Ranked {
		first = "first-ranked"
	}
	var rows [][]any
	for i, each := range e.Exports {
		since := "-"
		if each.Since != nil {
			since = each.Since.UTC().Format(time.RFC3339)
		}
		if i == 0 && each.Since != nil && len(e.Exports) > 1 {
			since += " (" + first + ")"
		}
		rows = append(rows, []any{each.Cluster, since, each.State, each.Used, each.Demoted, each.Other})
	}
	if err := section(out, wide, "Who exports it", "CLUSTER SINCE STATE USED DEMOTED OTHER", rows); err != nil {
		return err
	}
	for _, each := range e.Exports {
		if each.Why != "" {
			fmt.Fprintf(out, "%s: %s\n", each.Cluster, strings.TrimSuffix(each.Why, "."))
		}
	}

	rows = nil
	for _, property := range e.Properties {
		if wide || always[property.Field] || len(property.Dissent) > 0 {
			from := property.From
			switch {
			case len(property.Dissent) == 0 && len(e.Exports) > 1:
				from = "all agree"
			case len(property.Dissent) > 0 && property.Field == "ports":
				from = "all clusters, " + property.From + " before others"
			case len(property.Dissent) > 0:
				from += ", the " + first
			}
			rows = append(rows, []any{
				property.Field, output.Dash(property.Value), from,
				output.Dash(strings.Join(property.Dissent, "; ")),
			})
		}
	}
	if err := section(out, wide, "What it is", "PROPERTY VALUE FROM OTHERS_SAY", rows); err != nil {
		return err
	}

	if p := e.Preference; p != nil && (wide || p.AskedBy != "" || p.But != "") {
		fmt.Fprintf(out, "\nWhich endpoints come first\n%s\n", p.First)
		if p.AskedBy != "" {
			fmt.Fprintf(out, "asked for by %s\n", p.AskedBy)
		}
		if p.But != "" {
			fmt.Fprintf(out, "but: %s\n", p.But)
		}
	}

	rows = nil
	for _, endpoint := range e.Endpoints {
		rows = append(rows, []any{
			endpoint.Address, endpoint.Cluster, endpoint.State, endpoint.Why,
			output.Dash(endpoint.Zone), output.Dash(endpoint.HintedFor),
		})
	}
	if err := section(out, wide, "Endpoints", "ADDRESS CLUSTER STATE WHY +ZONE +HINTED_FOR", rows); err != nil {
		return err
	}

	if len(e.Answers) > 0 {
		fmt.Fprintf(out, "\nWhat DNS answers now (asked at %s)\n", e.Asked)
	}
	for _, answer := range e.Answers {
		verdict := "as it should be"
		switch {
		case answer.Wrong:
			verdict = "WRONG, it should be " + orNothing(answer.Expected)
		case answer.Part:
			verdict = "as it should be: some of " + strings.Join(answer.Expected, " ")
		case e.Import == nil && answer.Rcode == "NXDOMAIN":
			verdict = "as expected: it is not imported here"
		case answer.Rcode == "NXDOMAIN":
			verdict = "as it should be: no endpoint is ready"
		}
		fmt.Fprintf(out, "%s %s: %s (%s)\n", answer.Name, answer.Type, answer.Text(), verdict)
	}

	if len(e.Problems) == 0 {
		_, err := fmt.Fprintln(out, "\nNothing is wrong with it.")
		return err
	}
	fmt.Fprintln(out, "\nWhat to look at")
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

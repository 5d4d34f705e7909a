// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/output"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// Text writes the explanation as text. Wide output has all properties, and zones and hints of endpoints.
func (e *Explanation) Text(out io.Writer, wide bool) error {
	fmt.Fprintf(out, "%s in cluster %s: %s\n\n%s\n", e.Service, e.Cluster, e.Name, e.Summary)
	first := "oldest"
	if e.Ranked {
		first = "first-ranked"
	}
	var exports, properties, conditions, endpoints [][]any
	for i, each := range e.Exports {
		since := ""
		if !each.Since.IsZero() {
			since = each.Since.UTC().Format(time.RFC3339)
		}
		if i == 0 && since != "" && len(e.Exports) > 1 {
			since += " (" + first + ")"
		}
		exports = append(exports, []any{
			each.Cluster, since, each.State, each.Used, each.Demoted, each.Other, strings.Join(each.Rules, ", "),
		})
	}
	for _, each := range e.Properties {
		agreed, from := len(each.Dissent) == 0, each.From
		switch {
		case agreed && !wide && each.Field != "type" && each.Field != "ports" &&
			(each.Field != "exportedAnnotations" || each.Value == ""):
			continue // only of interest in a conflict
		case agreed && len(e.Exports) > 1:
			from = "all clusters"
		case !agreed && each.Field == "ports":
			from = "all clusters, " + from + " first"
		case !agreed:
			from += " (" + first + ")"
		}
		properties = append(properties, []any{each.Field, each.Value, from, strings.Join(each.Dissent, "; ")})
	}
	for _, each := range e.Conditions {
		_, name, _ := strings.Cut(each.Type, "/")
		conditions = append(conditions, []any{name, each.Status, each.Reason, each.Message})
	}
	for _, each := range e.Endpoints {
		endpoints = append(endpoints, []any{
			each.Address, each.Cluster, each.State, each.Reason, each.Zone, strings.Join(each.HintedFor, ", "),
		})
	}
	ruled := wide || slices.ContainsFunc(e.Exports, func(each state.Export) bool { return len(each.Rules) > 0 })
	for _, section := range []struct {
		wide            bool
		title, headings string
		rows            [][]any
	}{
		{ruled, "Exports", "CLUSTER SINCE STATE USED DEMOTED OTHER +RULES", exports},
		{wide, "Properties", "PROPERTY VALUE FROM CONFLICTS", properties},
		{wide, "Preferences", "CONDITION STATUS REASON MESSAGE", conditions},
		{wide, "Endpoints", "ADDRESS CLUSTER STATE REASON +ZONE +HINTED_FOR", endpoints},
	} {
		if err := output.Section(out, section.wide, "\n"+section.title, section.headings, section.rows); err != nil {
			return err
		}
	}
	if len(e.Answers) > 0 {
		fmt.Fprintf(out, "\nDNS (queried at %s)\n", e.Server)
	}
	for _, answer := range e.Answers {
		fmt.Fprintf(out, "%s %s: %s (%s)\n", answer.Name, answer.Type, answer.Text(), e.verdict(answer))
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

func (e *Explanation) verdict(answer Answer) string {
	switch {
	case answer.Wrong:
		return "WRONG, expected " + answer.ExpectedText()
	case answer.Part:
		return "correct: a part of " + strings.Join(answer.Expected, " ")
	case e.Import == nil && answer.Rcode == "NXDOMAIN":
		return "correct: not imported here"
	case answer.Rcode == "NXDOMAIN":
		return "correct: no endpoint is ready"
	}
	return "correct"
}

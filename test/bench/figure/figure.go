// SPDX-License-Identifier: Apache-2.0

// Package figure holds what a benchmark run found: figures with the goals they are held to, and the tables that show
// them. It is pure.
package figure

import (
	"fmt"
	"strings"
)

// Verdict says whether a figure reached its goal.
type Verdict int

const (
	// Stated is a figure without a goal.
	Stated Verdict = iota
	// Met is a figure that reached its goal.
	Met
	// Missed is a figure that did not.
	Missed
	// NotMeasured is a figure that the run could not take. What Measured says is why.
	NotMeasured
)

// String is the verdict as tables show it.
func (v Verdict) String() string {
	switch v {
	case Met:
		return "met"
	case Missed:
		return "**missed**"
	case NotMeasured:
		return "**not measured**"
	default:
		return "—"
	}
}

// Judge is Met where all of the checks hold.
func Judge(checks ...bool) Verdict {
	for _, ok := range checks {
		if !ok {
			return Missed
		}
	}
	return Met
}

// Figure is one row of a table.
type Figure struct {
	// What was measured, the Goal it is held to (empty: none), and what was Measured, in words and numbers.
	What, Goal, Measured string
	Verdict              Verdict
}

// Table is a titled group of figures.
type Table struct {
	Title string
	// Text tells how the figures were taken. It is Markdown.
	Text    string
	Figures []Figure
}

// Markdown shows the table under a heading of the second level.
func (t Table) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", t.Title)
	if t.Text != "" {
		fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(t.Text))
	}
	b.WriteString("| what | goal | measured | |\n| --- | --- | --- | --- |\n")
	for _, f := range t.Figures {
		goal := f.Goal
		if goal == "" {
			goal = "—"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.What, goal, f.Measured, f.Verdict)
	}
	return b.String()
}

// Count returns how many figures of the tables have each verdict.
func Count(tables []Table) map[Verdict]int {
	count := map[Verdict]int{}
	for _, table := range tables {
		for _, f := range table.Figures {
			count[f.Verdict]++
		}
	}
	return count
}

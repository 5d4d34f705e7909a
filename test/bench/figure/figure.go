// SPDX-License-Identifier: Apache-2.0

// Package figure holds what a benchmark run found: figures with the goals they are held to, and the tables that show
// them. It is pure.
package figure

import (
	"cmp"
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
)

// String is the verdict as tables show it.
func (v Verdict) String() string {
	switch v {
	case Met:
		return "met"
	case Missed:
		return "**missed**"
	default:
		return ""
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
	// What was measured, and the Goal it is held to (empty: none).
	What, Goal string
	// Cells are the values, in the order of the table's columns. Missing ones are empty.
	Cells   []string
	Verdict Verdict
}

// Table is a titled group of figures.
type Table struct {
	Title string
	// Text explains how the figures were taken. It is Markdown.
	Text string
	// Columns are the titles of the cells.
	Columns []string
	Figures []Figure
}

// Markdown shows the table under a heading of the second level.
func (t Table) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", t.Title)
	if t.Text != "" {
		fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(t.Text))
	}
	fmt.Fprintf(&b, "| what | %s | goal | |\n|%s\n", strings.Join(t.Columns, " | "),
		strings.Repeat(" --- |", len(t.Columns)+3))
	for _, f := range t.Figures {
		cells := append([]string{f.What}, f.Cells...)
		cells = append(cells, make([]string, max(0, len(t.Columns)-len(f.Cells)))...)
		for _, cell := range append(cells, f.Goal, f.Verdict.String()) {
			fmt.Fprintf(&b, "| %s ", cmp.Or(cell, "—"))
		}
		b.WriteString("|\n")
	}
	return b.String()
}

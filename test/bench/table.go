// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A figure is one row of a table.
type figure struct {
	// what was measured, and its goal; empty means no goal
	what, goal string
	// value is the number that is compared with the floor. measured is its text, by default in units of time.
	value    float64
	measured string
	// floor is the value of a client that does nothing else, and ratio is value divided by floor.
	floor, ratio string
	missed       bool // whether the goal was missed
}

// A limit is a goal for a figure with a floor.
type limit struct {
	text string
	most func(floor float64) float64
}

// ratio limits the ratio of a figure to its floor.
func ratio(most float64) *limit {
	return &limit{fmt.Sprintf("ratio ≤ %v", most), func(floor float64) float64 { return most * floor }}
}

// later limits the difference between a figure in nanoseconds and its floor.
func later(most time.Duration) *limit {
	return &limit{"floor + " + most.String(), func(floor float64) float64 { return floor + float64(most) }}
}

// compare sets the floor of a figure, a time. If limit is not nil, it is an additional goal.
func (f *figure) compare(floor float64, limit *limit) {
	f.floor, f.ratio = inUnits(floor), fmt.Sprintf("%.2f", f.value/floor)
	if limit != nil {
		f.goal = strings.TrimPrefix(f.goal+", "+limit.text, ", ")
		f.missed = f.missed || f.value > limit.most(floor)
	}
}

// A table is a titled group of figures. Its text explains the measurement.
type table struct {
	title, text string
	figures     []*figure
}

// add adds a figure, and returns it.
func (t *table) add(f *figure) *figure {
	f.measured = cmp.Or(f.measured, inUnits(f.value))
	t.figures = append(t.figures, f)
	return f
}

// markdown returns the table with a second-level heading.
func (t *table) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n| what | measured | floor | ratio | goal | |\n|%s\n", t.title, strings.TrimSpace(t.text),
		strings.Repeat(" --- |", 6))
	for _, f := range t.figures {
		verdict := ""
		if f.goal != "" {
			verdict = map[bool]string{false: "met", true: "**missed**"}[f.missed]
		}
		for _, cell := range []string{f.what, f.measured, f.floor, f.ratio, f.goal, verdict} {
			fmt.Fprintf(&b, "| %s ", cmp.Or(cell, "—"))
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// quantile returns the value that a fraction q of the samples does not exceed (nearest rank), or 0 without samples.
func quantile(samples []time.Duration, q float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return float64(sorted[min(max(rank, 0), len(sorted)-1)])
}

// inUnits formats nanoseconds with three digits.
func inUnits(nanoseconds float64) string {
	is, unit := time.Duration(nanoseconds), time.Duration(1)
	for is/unit >= 1000 {
		unit *= 10
	}
	return is.Round(unit).String()
}

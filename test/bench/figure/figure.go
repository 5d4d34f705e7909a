// SPDX-License-Identifier: Apache-2.0

// Package figure holds what a benchmark run found: figures with their floors and goals, and the tables that show them. It
// is pure.
package figure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Verdict says whether a figure reached its goal. The empty one is that of a figure without a goal.
type Verdict string

// The verdicts, as tables show them.
const (
	Met    Verdict = "met"
	Missed Verdict = "**missed**"
)

// Judge is Met where all of the checks hold.
func Judge(checks ...bool) Verdict {
	if slices.Contains(checks, false) {
		return Missed
	}
	return Met
}

// A Figure is one row of a table.
type Figure struct {
	// What was measured, and the Goal it is held to (empty: none).
	What, Goal string
	Measured   string
	// Value is the measured number that is compared with the floor.
	Value float64
	// Floor is what the same took a client that does nothing else, and Ratio the part of Value and of it.
	Floor, Ratio string
	Verdict      Verdict
}

// A Limit is a goal for a figure with a floor.
type Limit struct {
	text  string
	holds func(value, floor float64) bool
}

// Ratio limits the ratio of a figure and its floor.
func Ratio(most float64) *Limit {
	return &Limit{fmt.Sprintf("ratio ≤ %v", most), func(value, floor float64) bool { return value <= most*floor }}
}

// Later limits the difference of a figure in nanoseconds and its floor.
func Later(most time.Duration) *Limit {
	return &Limit{"floor + " + most.String(), func(value, floor float64) bool { return value <= floor+float64(most) }}
}

// Compare sets the floor of a figure, and holds the figure to a limit besides its goal; nil is none.
func (f *Figure) Compare(floor float64, show func(float64) string, limit *Limit) {
	f.Floor, f.Ratio = show(floor), fmt.Sprintf("%.2f", f.Value/floor)
	if limit != nil {
		f.Goal = strings.TrimPrefix(f.Goal+", "+limit.text, ", ")
		f.Verdict = Judge(f.Verdict != Missed, limit.holds(f.Value, floor))
	}
}

// A Table is a titled group of figures.
type Table struct {
	Title string
	// Text explains how the figures were taken. It is Markdown.
	Text    string
	Figures []*Figure
}

// Markdown shows the table under a heading of the second level.
func (t Table) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s\n\n| what | measured | floor | ratio | goal | |\n|%s\n", t.Title, strings.TrimSpace(t.Text),
		strings.Repeat(" --- |", 6))
	for _, f := range t.Figures {
		for _, cell := range []string{f.What, f.Measured, f.Floor, f.Ratio, f.Goal, string(f.Verdict)} {
			fmt.Fprintf(&b, "| %s ", cmp.Or(cell, "—"))
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// A Floor is what the same requests took a client that does nothing else.
type Floor struct {
	// Took and CPU are the time and the processor time of all requests.
	Took, CPU time.Duration
	// Count is the number of changes, P50 and P99 how long one took from its request to the event of a watch.
	Count    int
	P50, P99 time.Duration
}

// Quantile is the value that the part q of the samples does not exceed (nearest rank), 0 of no samples. It does not
// change the samples.
func Quantile[T float64 | time.Duration](samples []T, q float64) T {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Time shows nanoseconds with three digits, in the unit that fits.
func Time(nanoseconds float64) string { return scaled(nanoseconds, 1000, "ns", "µs", "ms", "s") }

// Bytes shows a number of octets with three digits, in the binary unit that fits.
func Bytes(octets float64) string { return scaled(octets, 1024, "B", "KiB", "MiB", "GiB") }

// Percent shows a part of a hundred.
func Percent(value float64) string { return fmt.Sprintf("%.2f %%", value) }

// scaled shows three digits, more where the whole part has more.
func scaled(value, step float64, units ...string) string {
	for len(units) > 1 && math.Abs(value) >= step {
		value, units = value/step, units[1:]
	}
	digits := 0
	switch magnitude := math.Abs(value); {
	case value == math.Trunc(value):
	case magnitude < 10:
		digits = 2
	case magnitude < 100:
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, value, units[0])
}

// Thousands writes a number with thousands separators.
func Thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", Thousands(n/1000), n%1000)
}

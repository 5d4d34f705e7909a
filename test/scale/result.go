// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/scale/fleet"
)

// result is what runs found of one cluster set.
type result struct {
	Shape   fleet.Shape
	Figures []measured

	about    string // when and how it is measured
	part     string // that runs
	baseHeap float64
	// ours are the figures that are compared with their floor, by what they are.
	ours map[string]float64
}

// measured is a figure of a part.
type measured struct {
	Part string
	figure.Figure
}

func newResult(o options) *result {
	return &result{Shape: o.shape, ours: map[string]float64{}, about: fmt.Sprintf(
		"%s; %d cores, %s; load average before %s; memory limit of the controller %d MiB; %d changes/s for %s",
		time.Now().UTC().Format("2 January 2006"), runtime.NumCPU(), runtime.Version(), loadAverage(), o.memory>>20,
		o.rate, o.changes)}
}

// loadAverage is how many processes wanted to run, in the mean of the last minute.
func loadAverage() string {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(content), " ")
	return first
}

// add adds figures of the part that runs.
func (r *result) add(figures ...figure.Figure) {
	for _, f := range figures {
		r.Figures = append(r.Figures, measured{r.part, f})
	}
}

// title names the cluster set of a result.
func (r *result) title() string {
	return fmt.Sprintf("%d clusters, %s services of %s endpoints", r.Shape.Members, thousands(r.Shape.Services),
		thousands(r.Shape.Endpoints/r.Shape.Services))
}

// table has the result alone.
func (r *result) table() figure.Table {
	table := figure.Table{Title: r.title(), Text: r.about, Columns: []string{"measured", "floor", "ratio"}}
	for _, f := range r.Figures {
		table.Figures = append(table.Figures, f.Figure)
	}
	return table
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

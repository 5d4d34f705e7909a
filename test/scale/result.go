// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/scale/fleet"
)

// result is what runs found of one cluster set.
type result struct {
	Shape fleet.Shape
	// About says of each part when and how it was measured.
	About   map[string]string
	Figures []measured
	Units   *units `json:",omitempty"`

	about    string
	part     string // that runs
	baseHeap float64
}

// measured is a figure of a part.
type measured struct {
	Part string
	figure.Figure
}

func newResult(o options) *result {
	return &result{Shape: o.shape, About: map[string]string{}, about: fmt.Sprintf(
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
	r.About[r.part] = r.about
	for _, f := range figures {
		r.Figures = append(r.Figures, measured{r.part, f})
	}
}

// file is where a result is kept.
func (r *result) file(folder string) string {
	return filepath.Join(folder, fmt.Sprintf("now-%d.json", r.Shape.Members))
}

// load reads a result that was kept, nil if there is none.
func load(path string) (*result, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // that there is none is no error
	}
	if err != nil {
		return nil, err
	}
	r := &result{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// keep writes the result. Parts that did not run stay as an earlier run left them.
func (r *result) keep(folder string) error {
	path := r.file(folder)
	before, err := load(path)
	if err != nil {
		return err
	}
	all := *r
	if before != nil && before.Shape == r.Shape {
		for part, about := range before.About {
			if _, again := r.About[part]; !again {
				all.About[part] = about
			}
		}
		for _, f := range before.Figures {
			if r.About[f.Part] == before.About[f.Part] && !slices.ContainsFunc(r.Figures,
				func(now measured) bool { return now.Part == f.Part }) {
				all.Figures = append(all.Figures, f)
			}
		}
		if all.Units == nil {
			all.Units = before.Units
		}
	}
	slices.SortStableFunc(all.Figures, func(a, b measured) int { return partNumber(a.Part) - partNumber(b.Part) })
	text, err := json.MarshalIndent(&all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func partNumber(name string) int {
	return slices.IndexFunc(parts, func(p part) bool { return p.name == name })
}

// title names the cluster set of a result.
func (r *result) title() string {
	return fmt.Sprintf("%d clusters, %s services of %s endpoints", r.Shape.Members, thousands(r.Shape.Services),
		thousands(r.Shape.Endpoints/r.Shape.Services))
}

// table has the result alone.
func (r *result) table() figure.Table {
	table := figure.Table{Title: r.title(), Columns: []string{"measured"}}
	for _, f := range r.Figures {
		table.Figures = append(table.Figures, f.Figure)
	}
	return table
}

// conditions says how the parts of a result were measured: rows of a table in Markdown.
func (r *result) conditions() string {
	parts := map[string][]string{}
	for part, about := range r.About {
		parts[about] = append(parts[about], part)
	}
	var lines []string
	for about, names := range parts {
		slices.SortFunc(names, func(a, b string) int { return partNumber(a) - partNumber(b) })
		lines = append(lines, fmt.Sprintf("| %d clusters | %s | %s |\n", r.Shape.Members, strings.Join(names, ", "), about))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

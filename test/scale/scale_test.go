// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

var must = controlplanetest.Must

// TestASmallSetIsMeasured runs all parts with few clusters. It holds no figure to its goal, but what must be true of
// any size: everything is imported, every change that is followed is answered, and every part finds figures.
func TestASmallSetIsMeasured(t *testing.T) {
	folder := t.TempDir()
	out := filepath.Join(folder, "scale.md")
	var stdout bytes.Buffer
	must(t, command(t.Context(), []string{
		"-shape", "small", "-rate", "50", "-changes", "3s", "-rest", "1s", "-silence", "1s", "-silent", "4",
		"-readers", "5", "-exports", "20", "-results", folder, "-out", out,
	}, &stdout, t.Output()))
	kept, err := load(filepath.Join(folder, "now-10.json"))
	must(t, err)
	found := map[string]int{}
	for _, f := range kept.Figures {
		found[f.Part]++
		if len(f.Cells) != 1 || !strings.ContainsAny(f.Cells[0], "0123456789") || strings.Contains(f.Cells[0], "NaN") ||
			strings.Contains(f.Cells[0], "Inf") || strings.Contains(f.Cells[0], "%!") {
			t.Errorf("not a figure: %s: %q", f.What, f.Cells)
		}
		if strings.Contains(f.What, "change → answer") && !strings.Contains(f.Cells[0], " 0 unanswered") {
			t.Errorf("%s: %s", f.What, f.Cells)
		}
	}
	for _, p := range parts {
		if found[p.name] == 0 {
			t.Errorf("part %s found no figure", p.name)
		}
	}
	written, err := os.ReadFile(out)
	must(t, err)
	for _, f := range kept.Figures {
		if !strings.Contains(string(written), "| "+f.What+" | "+f.Cells[0]+" |") {
			t.Errorf("the document lacks %s", f.What)
		}
	}
	if !strings.Contains(string(written), "511 full members, on paper") {
		t.Error("the document lacks the calculation")
	}
}

// TestAResultKeepsWhatOtherRunsFound merges two runs of different parts.
func TestAResultKeepsWhatOtherRunsFound(t *testing.T) {
	folder := t.TempDir()
	run := func(part, what, value string) {
		r := &result{Shape: shapes["small"], About: map[string]string{}, about: "at " + value, part: part}
		r.add(figure.Figure{What: what, Cells: []string{value}})
		must(t, r.keep(folder))
	}
	run("changes", "latency", "1 ms")
	run("import", "start", "2 s")
	run("changes", "latency", "3 ms")
	got, err := load(filepath.Join(folder, "now-10.json"))
	must(t, err)
	var all []string
	for _, f := range got.Figures {
		all = append(all, f.What+" "+f.Cells[0]+" "+got.About[f.Part])
	}
	if want := "start 2 s at 2 s, latency 3 ms at 3 ms"; strings.Join(all, ", ") != want {
		t.Errorf("got %q, want %q", strings.Join(all, ", "), want)
	}
}

func TestSamplesAreAdded(t *testing.T) {
	got := parseSamples(`# HELP a_total Something.
# TYPE a_total counter
a_total{verb="GET",resource="x"} 1
a_total{verb="PUT",resource="x"} 2
a_total{verb="PUT",resource="y"} 4.5
a_total_more{verb="PUT"} 100
b 7
`)
	for _, tc := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"a_total", nil, 7.5},
		{"a_total", []string{`verb="PUT"`}, 6.5},
		{"a_total", []string{`verb="PUT"`, `resource="y"`}, 4.5},
		{"b", nil, 7},
		{"c", nil, 0},
	} {
		if sum := got.sum(tc.name, tc.labels...); sum != tc.want {
			t.Errorf("%s %v: %v, want %v", tc.name, tc.labels, sum, tc.want)
		}
	}
}

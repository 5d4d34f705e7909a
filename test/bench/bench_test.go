// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/fleet"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

var must = controlplanetest.Must

// figures are those of a run. None is held to its goal, but each is a number.
func figures(t *testing.T, o options) []*figure.Figure {
	t.Helper()
	tables, err := measure(t.Context(), o, t.Output())
	must(t, err)
	var all []*figure.Figure
	for _, table := range tables {
		if len(table.Figures) == 0 {
			t.Errorf("%s: no figures", table.Title)
		}
		for _, f := range table.Figures {
			if text := f.Measured + f.Floor + f.Ratio; !strings.ContainsAny(f.Measured, "0123456789") || strings.Contains(text, "NaN") ||
				strings.Contains(text, "Inf") || strings.Contains(text, "%!") {
				t.Errorf("not a figure: %+v", f)
			}
		}
		t.Log(table.Markdown())
		all = append(all, table.Figures...)
	}
	return all
}

// TestJoinedClustersAreMeasured runs the parts of two clusters for a moment.
func TestJoinedClustersAreMeasured(t *testing.T) {
	shapes[joined] = fleet.Shape{Members: 2, Services: 40, Endpoints: 400, Spread: 2}
	figures(t, options{
		shape: joined, memory: 512, size: size{rounds: 1, load: time.Second, exports: 6, followed: 12},
	})
}

// TestASmallSetIsMeasured runs all parts with few clusters: everything is imported, and every change that is followed is
// answered.
func TestASmallSetIsMeasured(t *testing.T) {
	compared := map[string]bool{}
	for _, f := range figures(t, options{
		shape: "small", memory: 512, rate: 50, changes: 3 * time.Second, rest: time.Second,
	}) {
		compared[f.What] = f.Floor != "" && f.Ratio != ""
		if f.What == whatTail && !strings.Contains(f.Measured, " 0 unanswered") {
			t.Errorf("%s: %s", f.What, f.Measured)
		}
	}
	for _, what := range []string{whatImport, whatRest, whatMedian, whatTail, whatPerChange} {
		if !compared[what] {
			t.Errorf("%s has no floor", what)
		}
	}
}

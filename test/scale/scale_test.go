// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

var must = controlplanetest.Must

// TestASmallSetIsMeasured runs all parts with few clusters. It holds no figure to its goal, but what must be true of
// any size: everything is imported, every change that is followed is answered, and every part finds figures.
func TestASmallSetIsMeasured(t *testing.T) {
	o, err := parseOptions([]string{
		"-shape", "small", "-rate", "50", "-changes", "3s", "-rest", "1s",
	}, t.Output())
	must(t, err)
	result, err := measure(t.Context(), o, t.Output())
	must(t, err)
	found := map[string]int{}
	for _, f := range result.Figures {
		found[f.Part]++
		if len(f.Cells) == 0 || !strings.ContainsAny(f.Cells[0], "0123456789") || strings.Contains(f.Cells[0], "NaN") ||
			strings.Contains(f.Cells[0], "Inf") || strings.Contains(f.Cells[0], "%!") {
			t.Errorf("not a figure: %s: %q", f.What, f.Cells)
		}
		if f.What == whatTail && !strings.Contains(f.Cells[0], " 0 unanswered") {
			t.Errorf("%s: %s", f.What, f.Cells)
		}
	}
	for _, p := range parts {
		if found[p.name] == 0 && p.name != "floors" {
			t.Errorf("part %s found no figure", p.name)
		}
	}
	for what := range result.ours {
		if !slices.ContainsFunc(result.Figures, func(f measured) bool { return f.What == what && len(f.Cells) == 3 }) {
			t.Errorf("%s has no floor", what)
		}
	}
}

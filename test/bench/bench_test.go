// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

var must = controlplanetest.Must

// TestAQuickRunMeasuresEverything holds none of the figures to its goal, but each part has some, and each is a number.
func TestAQuickRunMeasuresEverything(t *testing.T) {
	var stdout bytes.Buffer
	must(t, command(t.Context(), []string{"-quick", "-rounds", "1"}, &stdout, t.Output()))
	run := stdout.String()
	if tables := strings.Count(run, "\n## "); tables < len(parts) {
		t.Errorf("%d parts have %d tables", len(parts), tables)
	}
	for _, found := range row.FindAllStringSubmatch(run, -1) {
		what, cell := found[1], found[2]
		measured, _, _ := strings.Cut(cell, " | ")
		switch {
		case what == "what", what == "---":
		case !strings.ContainsAny(measured, "123456789"), strings.Contains(cell, "NaN"), strings.Contains(cell, "Inf"),
			strings.Contains(cell, "%!"):
			t.Errorf("not a figure: %s: %s", what, cell)
		}
	}
	if t.Failed() {
		t.Log(run)
	}
}

var row = regexp.MustCompile(`(?m)^\| (.*?) \| (.* \| .*) \|$`)

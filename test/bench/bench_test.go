// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/bench/wire"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

var must = controlplanetest.Must

// TestAQuickRunMeasuresEverything holds the figures that a run takes against those of docs/benchmarks.md: the same, but
// for the sizes, and each with a number. None is held to its goal.
func TestAQuickRunMeasuresEverything(t *testing.T) {
	out := filepath.Join(t.TempDir(), "benchmarks.md")
	var stdout bytes.Buffer
	must(t, command(t.Context(), []string{"-quick", "-rounds", "1", "-out", out}, &stdout, t.Output()))
	written, err := os.ReadFile(out)
	must(t, err)
	if !bytes.Equal(written, stdout.Bytes()) {
		t.Error("what is written is not what is printed")
	}
	published, err := os.ReadFile("../../docs/benchmarks.md")
	must(t, err)
	if problems := unmeasured(string(written), string(published), wire.HaveDnsperf() == nil); len(problems) > 0 {
		t.Errorf("%s\nin\n%s", strings.Join(problems, "\n"), written)
	}
}

// unmeasured compares the figures of a run with those that should be taken. Without dnsperf a figure may say that it
// was not measured.
func unmeasured(run, published string, dnsperf bool) (problems []string) {
	got, want := measurements(run), measurements(published)
	for what := range want {
		if _, ok := got[what]; !ok {
			problems = append(problems, "missing: "+what)
		}
	}
	for what, cells := range got {
		if _, ok := want[what]; !ok {
			problems = append(problems, "not in docs/benchmarks.md: "+what)
		}
		for _, cell := range cells {
			ours, _, _ := strings.Cut(cell, " | ")
			switch skipped := strings.HasSuffix(cell, figure.NotMeasured.String()); {
			case skipped && !dnsperf:
			case skipped, !strings.ContainsAny(ours, "123456789"), strings.Contains(cell, "NaN"),
				strings.Contains(cell, "Inf"), strings.Contains(cell, "%!"):
				problems = append(problems, "not a figure: "+what+": "+cell)
			}
		}
	}
	slices.Sort(problems)
	return problems
}

var (
	row    = regexp.MustCompile(`(?m)^(?:## (.*)|\| (.*?) \| (.* \| .*) \|)$`)
	number = regexp.MustCompile(`[0-9]+(?:,[0-9]{3})*`)
)

// measurements are the cells of each row of a document after what was measured, by that and the title of its table,
// with every number as 0: sizes differ.
func measurements(document string) map[string][]string {
	all, title := map[string][]string{}, ""
	for _, found := range row.FindAllStringSubmatch(document, -1) {
		switch {
		case found[1] != "":
			title = found[1]
		case found[2] != "what" && found[2] != "---":
			what := title + ": " + number.ReplaceAllString(found[2], "0")
			all[what] = append(all[what], found[3])
		}
	}
	return all
}

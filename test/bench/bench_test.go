// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
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

// TestAQuickRunMeasuresEverything holds the figures that a run takes against those of docs/benchmarks.md: the same, but for the sizes,
// and each with a number. None is held to its goal.
func TestAQuickRunMeasuresEverything(t *testing.T) {
	out := filepath.Join(t.TempDir(), "benchmarks.md")
	var stdout bytes.Buffer
	if err := command(t.Context(), []string{"-quick", "-rounds", "1", "-out", out}, &stdout, t.Output()); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written, stdout.Bytes()) {
		t.Error("what is written is not what is printed")
	}
	published, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	if problems := unmeasured(string(written), string(published), wire.HaveDnsperf() == nil); len(problems) > 0 {
		t.Errorf("%s\nin\n%s", strings.Join(problems, "\n"), written)
	}
}

// unmeasured compares the figures of a run with those that should be taken. Without dnsperf a figure may say that it was not measured.
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
			switch skipped := strings.HasSuffix(cell, figure.NotMeasured.String()); {
			case skipped && !dnsperf:
			case skipped, !strings.ContainsAny(cell, "123456789"), strings.Contains(cell, "NaN"), strings.Contains(cell, "Inf"), strings.Contains(cell, "%!"):
				problems = append(problems, "not a figure: "+what+": "+cell)
			}
		}
	}
	slices.Sort(problems)
	return problems
}

var (
	row    = regexp.MustCompile(`(?m)^(?:## (.*)|\| (.*?) \| .*? \| (.* \| .*) \|)$`)
	number = regexp.MustCompile(`[0-9]+(?:,[0-9]{3})*`)
)

// measurements are the cells "measured" and verdict of each row of a document, by the title of its table and what was measured,
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

func TestUnmeasuredFiguresAreFound(t *testing.T) {
	document, err := os.ReadFile("../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	if problems := unmeasured(string(document), string(document), true); len(problems) > 0 || len(measurements(string(document))) < 30 {
		t.Errorf("%d figures in docs/benchmarks.md, %q", len(measurements(string(document))), problems)
	}
	const published = "## A\n\n| what | goal | measured | |\n| --- | --- | --- | --- |\n| of 1,000, p99 | — | 2 ms | met |\n| of 20 | — | 3 | — |\n"
	for _, test := range []struct {
		name, run string
		dnsperf   bool
		want      string
	}{
		{"the same in other sizes", "## A\n| of 5, p99 | — | 7 ms | **missed** |\n| of 2 | — | 1 | — |\n| of 3 | — | 1 | — |\n", true, ""},
		{"one is missing", "## A\n| of 5, p99 | — | 7 ms | met |\n", true, "missing: A: of 0"},
		{"one is in another table", "## A\n| of 5, p99 | — | 7 ms | met |\n## B\n| of 5 | — | 7 ms | met |\n", true, "missing: A: of 0\nnot in docs/benchmarks.md: B: of 0"},
		{"nothing was counted", "## A\n| of 5, p99 | — | 0 ms | met |\n| of 2 | — | 1 | — |\n", true, "not a figure: A: of 0, p0: 0 ms | met"},
		{"a ratio to nothing", "## A\n| of 5, p99 | — | NaN (1) | met |\n| of 2 | — | 1 | — |\n", true, "not a figure: A: of 0, p0: NaN (1) | met"},
		{"not measured", "## A\n| of 5, p99 | — | no dnsperf 1 | **not measured** |\n| of 2 | — | 1 | — |\n", true, "not a figure: A: of 0, p0: no dnsperf 1 | **not measured**"},
		{"not measured without dnsperf", "## A\n| of 5, p99 | — | no dnsperf | **not measured** |\n| of 2 | — | 1 | — |\n", false, ""},
	} {
		if got := strings.Join(unmeasured(test.run, published, test.dnsperf), "\n"); got != test.want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-only", "["}, {"-only", "no such part"}, {"replies"}} {
		if err := command(t.Context(), args, io.Discard, t.Output()); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 250_000: "250,000", 1_000_001: "1,000,001"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

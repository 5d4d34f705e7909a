// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/bench/figure"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// TestAQuickRunMeasuresEverything holds no figure to its goal: only that each is taken, whatever it is.
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
	text := string(written)
	if headings := strings.Count(text, "\n## "); headings != len(parts) {
		t.Errorf("%d tables are in\n%s\nwant one for each of %d parts", headings, text, len(parts))
	}
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s is in\n%s", bad, text)
		}
	}
	for _, needle := range []string{"| " + figure.NotMeasured.String() + " |"} {
		if strings.Contains(text, needle) && !strings.Contains(text, "dnsperf is missing") {
			t.Errorf("something was not measured in\n%s", text)
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

// SPDX-License-Identifier: Apache-2.0

package figure

import (
	"testing"
	"time"
)

func TestQuantileIsOfTheNearestRank(t *testing.T) {
	samples := []time.Duration{5, 1, 4, 2, 3}
	for _, tc := range []struct {
		q    float64
		want time.Duration
	}{{0, 1}, {0.2, 1}, {0.5, 3}, {0.8, 4}, {0.99, 5}, {1, 5}} {
		if got := Quantile(samples, tc.q); got != tc.want {
			t.Errorf("quantile %v is %d, want %d", tc.q, got, tc.want)
		}
	}
	if samples[0] != 5 {
		t.Error("the samples were sorted in place")
	}
	if got := Quantile[float64](nil, 0.5); got != 0 {
		t.Errorf("the quantile of nothing is %v", got)
	}
}

func TestRatioIsTakenRoundByRound(t *testing.T) {
	// The third round was disturbed, and both sides with it.
	if got := Ratio([]float64{2, 4, 20}, []float64{1, 2, 10}); got != 2 {
		t.Errorf("the ratio is %v, want 2", got)
	}
	if got := Median([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("the median is %v, want 2.5", got)
	}
}

func TestNumbersAreShort(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{Time(950), "950 ns"},
		{Time(1_234), "1.23 µs"},
		{Time(5_300_000), "5.30 ms"},
		{Time(12_340_000_000), "12.3 s"},
		{Bytes(1 << 20), "1 MiB"},
		{Bytes(232e6), "221 MiB"},
		{Number(1.2), "1.20"},
		{Number(33), "33"},
		{Number(104_233.4), "104233"},
	} {
		if tc.got != tc.want {
			t.Errorf("%q, want %q", tc.got, tc.want)
		}
	}
}

func TestATableShowsWhatIsMissed(t *testing.T) {
	table := Table{Title: "Replies", Text: "As measured.", Figures: []Figure{
		{What: "A", Goal: "≤ 2", Measured: "1", Verdict: Judge(1 <= 2, true)},
		{What: "B", Goal: "≤ 2", Measured: "3", Verdict: Judge(true, 3 <= 2)},
		{What: "C", Measured: "4"},
	}}
	want := `## Replies

As measured.

| what | goal | measured | |
| --- | --- | --- | --- |
| A | ≤ 2 | 1 | met |
| B | ≤ 2 | 3 | **missed** |
| C | — | 4 | — |
`
	if got := table.Markdown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if count := Count([]Table{table}); count[Met] != 1 || count[Missed] != 1 || count[Stated] != 1 {
		t.Errorf("counted %v", count)
	}
}

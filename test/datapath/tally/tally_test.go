// SPDX-License-Identifier: Apache-2.0

package tally_test

import (
	"math"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// The probabilities are those of tables of the chi-squared distribution.
func TestEvenChance(t *testing.T) {
	for _, test := range []struct {
		name    string
		answers map[string]int
		among   int
		want    float64
	}{
		{"all alike", map[string]int{"a": 250, "b": 250, "c": 250, "d": 250}, 4, 1},
		{"chi-squared 38.44 with one degree", map[string]int{"a": 5310, "b": 4690}, 2, 5.646e-10},
		{"chi-squared 4 with one degree", map[string]int{"a": 520, "b": 480}, 2, 0.2059},
		{"chi-squared 6 with two degrees", map[string]int{"a": 130, "b": 100, "c": 70}, 3, math.Exp(-9)},
		{"chi-squared 2 with three degrees", map[string]int{"a": 110, "b": 90, "c": 100, "d": 100}, 4, 0.5724},
		{"one never answers", map[string]int{"a": 50, "b": 50}, 3, math.Exp(-25)},
		{"a stranger answers", map[string]int{"a": 50, "b": 50}, 1, 0},
		{"nobody answers", nil, 2, 0},
		{"the only one answers", map[string]int{"a": 7}, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			counted := &tally.Tally{Answers: test.answers}
			if got := counted.EvenChance(test.among); math.Abs(got-test.want) > 0.002*test.want {
				t.Errorf("%v among %d: %.4g, want %.4g", test.answers, test.among, got, test.want)
			}
		})
	}
}

func TestString(t *testing.T) {
	counted := tally.New(tally.Attempt{Who: "west/a"}, tally.Attempt{Who: "east/a"}, tally.Attempt{Who: "west/b"}, tally.Attempt{Failure: "refused"})
	if got, want := counted.String(), "east 1, west 2, lost 1 (refused)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if counted.Total() != 4 || counted.Answered() != 3 || counted.Lost() != 1 {
		t.Errorf("total %d, answered %d, lost %d", counted.Total(), counted.Answered(), counted.Lost())
	}
}

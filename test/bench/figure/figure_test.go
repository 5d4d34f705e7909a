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

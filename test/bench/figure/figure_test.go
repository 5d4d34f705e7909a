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

func TestACompareIsAgainstTheFloor(t *testing.T) {
	for _, tc := range []struct {
		value float64
		limit *Limit
		want  Verdict
	}{
		{1.3e6, Ratio(1.3), Met},
		{1.4e6, Ratio(1.3), Missed},
		{6e6, Later(5 * time.Millisecond), Met},
		{7e6, Later(5 * time.Millisecond), Missed},
		{7e6, nil, ""},
	} {
		f := Figure{Value: tc.value}
		if f.Compare(1e6, Time, tc.limit); f.Verdict != tc.want || f.Floor != "1 ms" {
			t.Errorf("%v: %+v, want %s", tc.value, f, tc.want)
		}
	}
}

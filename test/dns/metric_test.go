// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// metric is the value of a counter or a gauge whose labels have these values.
func metric(t testing.TB, name string, values ...string) float64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			var got []string
			for _, pair := range m.GetLabel() {
				got = append(got, pair.GetValue())
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(values))
			if slices.Equal(got, want) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/clusterset-dns/clusterset-dns/controller/metrics"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestPasses counts how often controllers reconcile for one change: a new export merges the whole service, a changed
// endpoint costs its slice and no merge. An event that overtakes another costs a pass now and then: of five services the
// best counts for an export, and the median for a changed endpoint.
func TestPasses(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		const best, median = 0, 2
		count := func(which int, scope, service string, change func(name string)) (inWest, inEast uint64) {
			var counts [2][]uint64
			for i := range 5 {
				before := [2]uint64{passes(t, west, scope), passes(t, east, scope)}
				change(fmt.Sprintf("%s-%d", service, i))
				sim.Wait(time.Minute)
				counts[0] = append(counts[0], passes(t, west, scope)-before[0])
				counts[1] = append(counts[1], passes(t, east, scope)-before[1])
			}
			slices.Sort(counts[0])
			slices.Sort(counts[1])
			return counts[0][which], counts[1][which]
		}
		for service, headless := range map[string]bool{"web": false, "db": true} {
			count(best, metrics.ScopeService, service, func(name string) { west.Serve(name, headless, "10.65.0.1") })
			inWest, inEast := count(best, metrics.ScopeService, service, west.Export)
			if inWest < 1 || inWest > 3 || inEast < 1 || inEast > 4 {
				t.Errorf("an export of %s: %d passes in west, at most 3 expected; %d in east, at most 4 expected",
					service, inWest, inEast)
			}
			merged := [2]uint64{passes(t, west, metrics.ScopeService), passes(t, east, metrics.ScopeService)}
			inWest, inEast = count(median, metrics.ScopeSlice, service,
				func(name string) { west.SetEndpoints(name, "10.65.0.2") })
			if inWest != 1 || inEast != 1 {
				t.Errorf("a changed endpoint of %s: %d slice passes in west, %d in east, want 1 in each", service,
					inWest, inEast)
			}
			merged[0] = passes(t, west, metrics.ScopeService) - merged[0]
			merged[1] = passes(t, east, metrics.ScopeService) - merged[1]
			if merged != [2]uint64{} {
				t.Errorf("five changed endpoints of %s: %d merges in west and east, want none", service, merged)
			}
		}
		expect(t, east, map[string]string{"web-0": "west/10.65.0.2 -> VIP", "db-0": "west/10.65.0.2 -> 10.65.0.2"})
	})
}

// passes is how often a controller reconciled something of a scope.
func passes(t *testing.T, c *sim.Cluster, scope string) (count uint64) {
	t.Helper()
	families, err := c.Registry.Gather()
	must(t, err)
	for _, family := range families {
		if family.GetName() == "clusterset_controller_reconcile_duration_seconds" {
			for _, each := range family.GetMetric() {
				if slices.ContainsFunc(each.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == scope }) {
					count += each.GetHistogram().GetSampleCount()
				}
			}
		}
	}
	return count
}

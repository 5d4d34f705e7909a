// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestPasses counts how often controllers reconcile for one change: what they write makes no pass due, also if the watch shows
// it before the answer comes. An event that overtakes another costs an export a pass now and then: of five services the best
// counts.
func TestPasses(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		const best, worst = 0, 4
		count := func(which int, service string, change func(name string)) (inWest, inEast uint64) {
			var counts [2][]uint64
			for i := range 5 {
				before := [2]uint64{passes(t, west), passes(t, east)}
				change(fmt.Sprintf("%s-%d", service, i))
				sim.Wait(time.Minute)
				counts[0] = append(counts[0], passes(t, west)-before[0])
				counts[1] = append(counts[1], passes(t, east)-before[1])
			}
			slices.Sort(counts[0])
			slices.Sort(counts[1])
			return counts[0][which], counts[1][which]
		}
		for service, headless := range map[string]bool{"web": false, "db": true} {
			count(best, service, func(name string) { west.Serve(name, headless, "10.65.0.1") })
			inWest, inEast := count(best, service, west.Export)
			if inWest < 1 || inWest > 4 || inEast < 1 || inEast > 4 {
				t.Errorf("an export of %s: %d passes in west, %d in east, at most 4 expected", service, inWest, inEast)
			}
			inWest, inEast = count(worst, service, func(name string) { west.SetEndpoints(name, "10.65.0.2") })
			if inWest != 1 || inEast != 1 {
				t.Errorf("a changed endpoint of %s: %d passes in west, %d in east, want 1 in each", service,
					inWest, inEast)
			}
		}
		expect(t, east, map[string]string{"web-0": "west/10.65.0.2 -> VIP", "db-0": "west/10.65.0.2 -> 10.65.0.2"})
	})
}

// passes is how often a controller reconciled.
func passes(t *testing.T, c *sim.Cluster) (count uint64) {
	t.Helper()
	families, err := c.Registry.Gather()
	must(t, err)
	for _, family := range families {
		if family.GetName() == "clusterset_controller_reconcile_duration_seconds" {
			for _, each := range family.GetMetric() {
				count += each.GetHistogram().GetSampleCount()
			}
		}
	}
	return count
}

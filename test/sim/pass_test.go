// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestPasses counts how often controllers reconcile for one change. A pass is one
// merge.
func TestPasses(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		for _, headless := range []bool{false, true} {
			service := map[bool]string{false: "web", true: "db"}[headless]
			west.Serve(service, headless, "10.65.0.1")
			sim.Wait(time.Minute)
			for _, step := range []struct {
				what       string
				change     func()
				west, east uint64 // at most
			}{
				{"an export", func() { west.Export(service) }, 3, 4},
				{"a changed endpoint", func() { west.SetEndpoints(service, "10.65.0.2") }, 1, 1},
			} {
				before := [2]uint64{passes(t, west), passes(t, east)}
				step.change()
				sim.Wait(time.Minute)
				inWest, inEast := passes(t, west)-before[0], passes(t, east)-before[1]
				t.Logf("%s of %s: %d passes in west, %d in east", step.what, service, inWest, inEast)
				if inWest < 1 || inWest > step.west || inEast < 1 || inEast > step.east {
					t.Errorf("%s of %s: %d passes in west, at most %d expected; %d in east, at most %d expected",
						step.what, service, inWest, step.west, inEast, step.east)
				}
			}
			expect(t, east, map[string]string{service: map[bool]string{false: "west/10.65.0.2 -> VIP", true: "west/10.65.0.2 -> 10.65.0.2"}[headless]})
		}
	})
}

// passes is how often a controller reconciled a service.
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

// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// expect waits for a moment and compares what clients see.
func expect(t *testing.T, c *sim.Cluster, want map[string]string) {
	t.Helper()
	sim.Wait(3 * time.Second)
	for service, text := range want {
		if got := c.See(service); got != text {
			t.Errorf("%s at %s: %s\ngot  %s\nwant %s", c.Name, time.Now().Format(time.TimeOnly), service, got, text)
		}
	}
}

// TestOnlyWhatIsExportedIsSent asserts what a cluster sends to a member: the
// slices of its exports, however many others it has.
func TestOnlyWhatIsExportedIsSent(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		for i := range 20 {
			west.Serve(fmt.Sprintf("private-%d", i), false, "10.65.3.1")
		}
		west.Export("web")
		sim.Wait(3 * time.Second)
		if sent := sentTo(west, east); sent != 0 {
			t.Errorf("west sent %d EndpointSlices to east for an export without a Service, want none", sent)
		}
		west.Withdraw("web")
		sim.Wait(3 * time.Second)
		west.Serve("web", false, "10.65.0.1")
		sim.Wait(3 * time.Second)
		west.Export("web")
		expect(t, east, map[string]string{"web": "west/10.65.0.1 -> VIP"})
		if sent := sentTo(west, east); sent != 1 {
			t.Errorf("west sent %d EndpointSlices to east, want 1", sent)
		}
	})
}

// sentTo counts the EndpointSlices that a cluster sent to another.
func sentTo(from, to *sim.Cluster) (count int) {
	for request, objects := range from.API.Sent() {
		if request.Host == to.Name && request.Resource.Resource == "endpointslices" {
			count += objects
		}
	}
	return count
}

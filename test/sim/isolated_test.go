// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// TestAllOthersAreLost: a cluster that reaches neither the API servers nor the pods of the others sends all connections
// to its own endpoints within 5 s, for as long as that lasts, and to all again once each is back. It has lost its uplink,
// or the other clusters have failed together.
func TestAllOthersAreLost(t *testing.T) {
	for _, names := range [][]string{{"east", "west"}, three, {"east", "west", "north", "south", "c1"}} {
		for _, uplink := range []bool{true, false} {
			t.Run(strings.Join(names, " "), func(t *testing.T) {
				onPaths(t, names, func(p *paths) {
					east := p.Cluster("east")
					whole := east.See("web")
					for _, other := range names[1:] {
						if !uplink {
							p.Cluster(other).StopController()
						}
						p.Network.Cut("east", other, network.Both)
						p.cut("east", other, network.Both)
					}
					sim.Wait(5 * time.Second)
					for began := time.Now(); time.Since(began) < time.Hour; sim.Wait(5 * time.Minute) {
						if got := inUse(east); got != "10.64.0.1" {
							t.Fatalf("after %s clients of east are sent to %s (%s)", 5*time.Second+time.Since(began), got,
								east.See("web"))
						}
					}
					for _, other := range names[1:] {
						p.Network.Restore("east", other)
						p.restore("east", other)
						if !uplink {
							p.Cluster(other).StartController()
						}
						p.until("east", other, false, 30*time.Second)
					}
					sim.Wait(time.Second)
					expect(t, east, map[string]string{"web": whole})
				})
			})
		}
	}
}

// inUse returns the addresses of web that clients of a cluster are sent to.
func inUse(c *sim.Cluster) string {
	var ready []string
	for _, each := range strings.Fields(strings.Split(c.See("web"), " -> ")[0]) {
		if !strings.HasSuffix(each, "~") {
			_, address, _ := strings.Cut(each, "/")
			ready = append(ready, address)
		}
	}
	return strings.Join(ready, " ")
}

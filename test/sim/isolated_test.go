// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// TestLostClusters: a cluster that reaches neither the API servers nor the pods of others sends them no connection after
// 5 s, for as long as that lasts, and all again once each is back. It has lost its uplink, or the others have failed
// together: all of them, or two of four.
func TestLostClusters(t *testing.T) {
	five := []string{"east", "west", "north", "south", "c1"}
	for _, row := range []struct{ names, lost []string }{
		{five[:2], five[1:2]}, {three, three[1:]}, {five, five[1:]}, {five, five[1:3]},
	} {
		for _, uplink := range []bool{true, false} {
			names := row.names
			if uplink && len(row.lost) < len(names)-1 {
				continue
			}
			t.Run(fmt.Sprint(names, " without ", row.lost, " ", uplink), func(t *testing.T) {
				onPaths(t, names, func(p *paths) {
					east := p.Cluster("east")
					whole := east.See("web")
					var left []string
					for _, each := range strings.Fields(inUse(east)) {
						if !slices.ContainsFunc(row.lost, func(name string) bool { return strings.Contains(whole, name+"/"+each) }) {
							left = append(left, each)
						}
					}
					for _, other := range row.lost {
						if !uplink {
							p.Cluster(other).StopController()
						}
						p.Network.Cut("east", other, network.Both)
						p.cut("east", other, network.Both)
					}
					sim.Wait(5 * time.Second)
					for began := time.Now(); time.Since(began) < time.Hour; sim.Wait(5 * time.Minute) {
						if got := inUse(east); got != strings.Join(left, " ") {
							t.Fatalf("after %s clients of east are sent to %s (%s)", 5*time.Second+time.Since(began), got,
								east.See("web"))
						}
					}
					for _, other := range row.lost {
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

// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

var three = []string{"east", "west", "north"}

// TestPathIsCut: heartbeats arrive, but pods of west are unreachable for east. East demotes west, and no other cluster demotes any.
func TestPathIsCut(t *testing.T) {
	const everywhere = "east/10.64.0.1 north/10.66.0.1 west/10.65.0.1 -> VIP"
	const withoutIt = "east/10.64.0.1 north/10.66.0.1 west/10.65.0.1~ -> VIP"
	for name, direction := range map[string]network.Direction{
		"in both directions": network.Both, "nothing gets there": network.ToServer, "nothing comes back": network.FromServer,
	} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, three, func(t *testing.T, set *sim.ClusterSet) {
				// Each cluster has two replicas, in pods that are probe targets.
				targets := map[string][]string{}
				for i, c := range set.Clusters() {
					targets[c.Name] = []string{fmt.Sprintf("10.6%d.9.1", 4+i), fmt.Sprintf("10.6%d.9.2", 4+i)}
					c.Stop()
					for _, address := range targets[c.Name] {
						c.StartReplica(replica(address), c.Target(address))
						sim.Wait(time.Second) // so that the first replica leads
					}
					c.OfferTargets(targets[c.Name]...)
					c.Export(fmt.Sprintf("web:10.6%d.0.1", 4+i))
				}
				sim.Wait(time.Minute)
				lease := func(p [2]string, annotation string) string {
					return set.Cluster(p[0]).Lease(memberstate.LeasePrefix + p[1]).Annotations[annotation]
				}
				east, toWest := set.Cluster("east"), [2]string{"east", "west"}
				// becomes returns the time until east sees the endpoints. The Lease of west has its state within another second.
				becomes := func(sees, state string, atMost time.Duration) time.Duration {
					t.Helper()
					began := time.Now()
					for ; east.See("web") != sees; sim.Wait(50 * time.Millisecond) {
						if time.Since(began) > atMost {
							t.Fatalf("west is not %s after %s; east sees %s", state, atMost, east.See("web"))
						}
					}
					took := time.Since(began)
					sim.Wait(1100 * time.Millisecond)
					if got := lease(toWest, memberstate.StateAnnotation); got != state {
						t.Fatalf("the Lease says that west is %s, want %s", got, state)
					}
					return took
				}
				stays := func(p [2]string, state string, long time.Duration) {
					t.Helper()
					for began := time.Now(); time.Since(began) < long; sim.Wait(250 * time.Millisecond) {
						if got := lease(p, memberstate.StateAnnotation); got != state {
							t.Fatalf("%s is %s for %s after %s", p[1], got, p[0], time.Since(began))
						}
					}
				}
				cut := func() {
					for _, target := range targets["west"] {
						set.Network.Cut("east", target, direction)
					}
				}
				for phase := range 3 { // of the probes, when the path is cut
					sim.Wait(6*time.Minute + time.Duration(phase)*330*time.Millisecond)
					if path := lease(toWest, memberstate.PathAnnotation); path != "reachable" {
						t.Fatalf("the Lease has the path %q", path)
					}
					cut()
					away := becomes(withoutIt, "stale", 3700*time.Millisecond) // kube-proxy needs another second
					if path := lease(toWest, memberstate.PathAnnotation); path != "unreachable" {
						t.Errorf("the Lease has the path %q", path)
					}
					stays(toWest, "stale", time.Minute)
					for _, target := range targets["west"] {
						set.Network.Restore("east", target)
					}
					back := becomes(everywhere, "fresh", 5*time.Second)
					t.Logf("demoted after %s, back after %s", away, back)
				}
				cut()
				becomes(withoutIt, "stale", 5*time.Second)
				for _, pair := range [][2]string{{"north", "west"}, {"west", "east"}, {"east", "north"}} {
					stays(pair, "fresh", 10*time.Second)
				}
			})
		})
	}
}

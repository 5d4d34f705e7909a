// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// paths is a cluster set whose clusters have two replicas, in pods that are probe targets.
type paths struct {
	t *testing.T
	*sim.ClusterSet
	replicas map[string]*scenario.Controller // by address
}

// targetsOf returns the addresses of the probe targets of a cluster.
func targetsOf(cluster string) []string {
	number := slices.Index(three, cluster)
	return []string{fmt.Sprintf("10.6%d.9.1", 4+number), fmt.Sprintf("10.6%d.9.2", 4+number)}
}

// onPaths runs a scenario on clusters that all serve and export web, and whose pods can reach each other.
func onPaths(t *testing.T, run func(p *paths)) {
	t.Helper()
	sim.Run(t, three, func(t *testing.T, set *sim.ClusterSet) {
		p := &paths{t, set, map[string]*scenario.Controller{}}
		for i, c := range set.Clusters() {
			c.Stop()
			for _, address := range targetsOf(c.Name) {
				p.start(c, address)
			}
			c.OfferTargets(targetsOf(c.Name)...)
			c.Export(fmt.Sprintf("web:10.6%d.0.1", 4+i))
		}
		sim.Wait(time.Minute)
		for _, pair := range set.Pairs() {
			if got := p.lease(pair.Reader.Name, pair.Source.Name, memberstate.PathAnnotation); got != "reachable" {
				t.Fatalf("the path from %s to %s is %q", pair.Reader.Name, pair.Source.Name, got)
			}
		}
		run(p)
	})
}

// start starts a replica in the pod with this address.
func (p *paths) start(c *sim.Cluster, address string) {
	p.replicas[address] = c.StartReplica(replica(address), c.Target(address))
	sim.Wait(time.Second) // so that the first replica leads
}

// lease returns an annotation of the reader's Lease for a member.
func (p *paths) lease(reader, source, annotation string) string {
	return p.Cluster(reader).Lease(memberstate.LeasePrefix + source).Annotations[annotation]
}

// cut cuts a direction between the pods of two clusters.
func (p *paths) cut(from, to string, direction network.Direction) {
	for _, target := range targetsOf(to) {
		p.Network.Cut(from, target, direction)
	}
}

// restore undoes cut.
func (p *paths) restore(from, to string) {
	for _, target := range targetsOf(to) {
		p.Network.Restore(from, target)
	}
}

// The states of a demoted member, and of a member that is not demoted.
const stale, fresh = "stale", "fresh"

// until returns the time until a member has a state. It fails after atMost.
func (p *paths) until(reader, source, state string, atMost time.Duration) time.Duration {
	p.t.Helper()
	began := time.Now()
	for p.lease(reader, source, memberstate.StateAnnotation) != state {
		if time.Since(began) > atMost {
			p.t.Fatalf("%s is not %s for %s after %s; it sees %s", source, state, reader, atMost, p.Cluster(reader).See("web"))
		}
		sim.Wait(50 * time.Millisecond)
	}
	return time.Since(began)
}

// never asserts that a member does not have a state during this time.
func (p *paths) never(reader, source, state string, long time.Duration) {
	p.t.Helper()
	for began := time.Now(); time.Since(began) < long; sim.Wait(250 * time.Millisecond) {
		if p.lease(reader, source, memberstate.StateAnnotation) == state {
			p.t.Fatalf("%s is %s for %s after %s", source, state, reader, time.Since(began))
		}
	}
}

var three = []string{"east", "west", "north"}

const (
	everywhere = "east/10.64.0.1 north/10.66.0.1 west/10.65.0.1 -> VIP"
	withoutIt  = "east/10.64.0.1 north/10.66.0.1 west/10.65.0.1~ -> VIP"
)

// TestPathIsCut: heartbeats arrive, but pods are unreachable.
func TestPathIsCut(t *testing.T) {
	for _, row := range []struct {
		name      string
		direction network.Direction
	}{
		{"in both directions", network.Both},
		{"nothing gets there", network.ToServer},
		{"nothing comes back", network.FromServer},
	} {
		t.Run(row.name, func(t *testing.T) {
			onPaths(t, func(p *paths) {
				east := p.Cluster("east")
				for phase := range 3 { // of the probes, when the path is cut
					sim.Wait(6*time.Minute + time.Duration(phase)*330*time.Millisecond)
					p.cut("east", "west", row.direction)
					away := p.until("east", "west", stale, 3700*time.Millisecond) // kube-proxy needs another second
					if path := p.lease("east", "west", memberstate.PathAnnotation); path != "unreachable" {
						t.Errorf("the Lease has the path %q", path)
					}
					expect(t, east, map[string]string{"web": withoutIt})
					p.never("east", "west", fresh, time.Minute)
					p.restore("east", "west")
					back := p.until("east", "west", fresh, 5*time.Second)
					t.Logf("demoted after %s, back after %s", away, back)
					expect(t, east, map[string]string{"web": everywhere})
				}
				// Only the path from east to west is affected.
				p.cut("east", "west", row.direction)
				p.until("east", "west", stale, 5*time.Second)
				for _, pair := range [][2]string{{"north", "west"}, {"west", "east"}, {"east", "north"}} {
					p.never(pair[0], pair[1], stale, 10*time.Second)
				}
			})
		})
	}
}

// TestPathAndLeaders: neither a new leader nor a rolling restart in west demotes west, and a new leader in east keeps
// the state that the previous leader published.
func TestPathAndLeaders(t *testing.T) {
	onPaths(t, func(p *paths) {
		west, old := p.Cluster("west"), targetsOf("west")
		p.replicas[old[0]].Kill()
		p.never("east", "west", stale, time.Minute)
		p.start(west, old[0])
		sim.Wait(time.Minute)

		// Each pod leaves the EndpointSlices, runs for another 10 s, and is replaced.
		now := slices.Clone(old)
		for round := range 4 {
			next := fmt.Sprintf("10.65.9.%d", 10+round)
			p.start(west, next)
			west.OfferTargets(now[1], next)
			p.never("east", "west", stale, 10*time.Second)
			p.replicas[now[0]].Stop()
			now = []string{now[1], next}
			p.never("east", "west", stale, 2*time.Second)
		}
		p.never("east", "west", stale, time.Minute)

		east := targetsOf("east")
		for _, target := range now {
			p.Network.Cut("east", target, network.Both)
		}
		p.until("east", "west", stale, 5*time.Second)
		p.replicas[east[0]].Stop()
		p.never("east", "west", fresh, time.Minute)
		for _, target := range now {
			p.Network.Restore("east", target)
		}
		p.until("east", "west", fresh, 5*time.Second)
	})
}

// TestLostClusters: if a cluster reaches neither the API servers nor the pods of one or all other clusters, it stops sending
// connections to them after 5 s, for as long as they are unreachable, and resumes after they are back.
func TestLostClusters(t *testing.T) {
	for want, lost := range map[string][]string{
		withoutIt: {"west"},
		"east/10.64.0.1 north/10.66.0.1~ west/10.65.0.1~ -> VIP": {"west", "north"},
	} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			onPaths(t, func(p *paths) {
				east := p.Cluster("east")
				for _, other := range lost {
					p.Network.Cut("east", other, network.Both)
					p.cut("east", other, network.Both)
				}
				sim.Wait(2 * time.Second)
				for began := time.Now(); time.Since(began) < time.Hour; sim.Wait(5 * time.Minute) {
					expect(t, east, map[string]string{"web": want})
				}
				for _, other := range lost {
					p.Network.Restore("east", other)
					p.restore("east", other)
					p.until("east", other, fresh, 30*time.Second)
				}
				expect(t, east, map[string]string{"web": everywhere})
			})
		})
	}
}

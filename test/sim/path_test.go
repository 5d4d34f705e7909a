// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
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
	number := slices.Index([]string{"east", "west", "north", "south", "c1"}, cluster)
	return []string{fmt.Sprintf("10.6%d.9.1", 4+number), fmt.Sprintf("10.6%d.9.2", 4+number)}
}

// onPaths runs a scenario on clusters that all serve and export web, and whose pods can reach each other.
func onPaths(t *testing.T, names []string, run func(p *paths)) {
	t.Helper()
	sim.Run(t, names, func(t *testing.T, set *sim.ClusterSet) {
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
		for _, reader := range set.Clusters() {
			for _, source := range set.Clusters() {
				if reader == source {
					continue
				}
				if got := p.path(reader, source.Name); got != "reachable" {
					t.Fatalf("the path from %s to %s is %q", reader.Name, source.Name, got)
				}
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
func (p *paths) lease(reader *sim.Cluster, source, annotation string) string {
	return reader.Lease(memberstate.LeasePrefix + source).Annotations[annotation]
}

func (p *paths) path(reader *sim.Cluster, source string) string {
	return p.lease(reader, source, memberstate.PathAnnotation)
}

// change changes the way from each pod of a cluster to each of the probe targets.
func (p *paths) change(from string, targets []string, change func(from, target string)) {
	for _, each := range targets {
		change(from, each)
	}
}

// cut cuts a direction between the pods of two clusters.
func (p *paths) cut(from, to string, direction network.Direction) {
	p.change(from, targetsOf(to), func(from, target string) { p.Network.Cut(from, target, direction) })
}

// restore undoes cut and the other faults.
func (p *paths) restore(from, to string) { p.change(from, targetsOf(to), p.Network.Restore) }

// The states of a demoted member, and of a member that is not demoted.
const stale, fresh = "stale", "fresh"

// until returns the time until a member has a state. It fails after atMost.
func (p *paths) until(reader, source, state string, atMost time.Duration) time.Duration {
	p.t.Helper()
	c, began := p.Cluster(reader), time.Now()
	for p.lease(c, source, memberstate.StateAnnotation) != state {
		if time.Since(began) > atMost {
			p.t.Fatalf("%s is not %s for %s after %s; %s sees %s", source, state, reader, atMost, reader, c.See("web"))
		}
		sim.Wait(50 * time.Millisecond)
	}
	return time.Since(began)
}

// never asserts that a member does not have a state during this time.
func (p *paths) never(reader, source, state string, long time.Duration) {
	p.t.Helper()
	for began := time.Now(); time.Since(began) < long; sim.Wait(250 * time.Millisecond) {
		if p.lease(p.Cluster(reader), source, memberstate.StateAnnotation) == state {
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
			onPaths(t, three, func(p *paths) {
				east := p.Cluster("east")
				for phase := range 3 { // of the probes, when the path is cut
					sim.Wait(6*time.Minute + time.Duration(phase)*330*time.Millisecond)
					p.cut("east", "west", row.direction)
					away := p.until("east", "west", stale, 3700*time.Millisecond) // kube-proxy needs another second
					if path := p.lease(east, "west", memberstate.PathAnnotation); path != "unreachable" {
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

// TestPathIsWhole: late or lost probes do not demote a cluster. TestPaths of controller/liveness and TestOutcome of
// controller/probe have an unreachable pod, and controllers that starve, are busy or restart.
func TestPathIsWhole(t *testing.T) {
	for name, disturb := range map[string]func(n *network.Network, from, target string){
		"probes are late": func(n *network.Network, from, target string) {
			n.Delay(from, target, 200*time.Millisecond, 300*time.Millisecond)
		},
		"a fifth is lost": func(n *network.Network, from, target string) { n.Lose(from, target, 0.2) },
	} {
		t.Run(name, func(t *testing.T) {
			onPaths(t, three, func(p *paths) {
				p.change("east", targetsOf("west"), func(from, target string) { disturb(p.Network, from, target) })
				p.never("east", "west", stale, 10*time.Minute)
			})
		})
	}
}

// TestPathAndLeaders: neither a new leader nor a rolling restart in west demotes west, and a new leader in east keeps
// the state that the previous leader published.
func TestPathAndLeaders(t *testing.T) {
	onPaths(t, three, func(p *paths) {
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

// TestLostClusters: if a cluster reaches neither the API servers nor the pods of other clusters, it stops sending
// connections to them after 5 s, for as long as they are unreachable, and resumes after they are back. Either it has
// lost its uplink, or all other clusters, or two of four, fail together.
func TestLostClusters(t *testing.T) {
	five := []string{"east", "west", "north", "south", "c1"}
	for _, row := range []struct{ names, lost []string }{
		{five[:2], five[1:2]}, {three, three[1:]}, {five, five[1:3]},
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
							p.Cluster(other).Stop()
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
							p.Cluster(other).Start()
						}
						p.until("east", other, fresh, 30*time.Second)
					}
					sim.Wait(time.Second)
					expect(t, east, map[string]string{"web": whole})
				})
			})
		}
	}
}

// inUse returns the addresses of web to which clients of a cluster connect.
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

// TestNoTarget: a member without probe targets is not probed, and the results of earlier probes are discarded.
func TestNoTarget(t *testing.T) {
	onPaths(t, three, func(p *paths) {
		p.cut("east", "west", network.Both)
		p.until("east", "west", stale, 5*time.Second)
		// All replicas are unready for a moment.
		p.Cluster("west").OfferTargets()
		p.never("east", "west", fresh, 4*liveness.HeartbeatInterval)
		p.Cluster("west").OfferTargets(targetsOf("west")...)
		p.never("east", "west", fresh, time.Minute)
		p.Cluster("west").OfferTargets()
		p.until("east", "west", fresh, 30*time.Second+2*liveness.HeartbeatInterval)
		if got := p.path(p.Cluster("east"), "west"); got != "" {
			t.Errorf("the path is %q", got)
		}
		p.never("east", "west", stale, 2*controller.DefaultStaleAfter)
		// Now west runs a controller without probes.
		for _, address := range targetsOf("west") {
			p.replicas[address].Stop()
		}
		p.Cluster("west").OfferTargets(targetsOf("west")...)
		p.Cluster("west").Start()
		p.never("east", "west", stale, 2*controller.DefaultStaleAfter)
		if got := p.path(p.Cluster("west"), "east"); got != "" {
			t.Errorf("the path from a cluster that takes no part is %q", got)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// A fault concerns west: all that read it, or one reader if onlyReader is set.
type fault struct {
	name        string
	begin, heal func(set *sim.ClusterSet, reader string)
	onlyReader  bool
	// early tells that west is demoted at once: what it says is not believed.
	early bool
}

// onWay is a fault of the way from a reader to west.
func onWay(name string, begin func(n *network.Network, reader, west string)) fault {
	return fault{
		name: name, onlyReader: true,
		begin: func(set *sim.ClusterSet, reader string) { begin(set.Network, reader, "west") },
		heal:  func(set *sim.ClusterSet, reader string) { set.Network.Restore(reader, "west") },
	}
}

// cut is a way that lets nothing through in a direction.
func cut(direction network.Direction, reset bool) func(n *network.Network, reader, west string) {
	return func(n *network.Network, reader, west string) {
		n.Cut(reader, west, direction)
		if reset {
			n.Reset(reader, west)
		}
	}
}

// lost is a way that loses a share.
func lost(share float64) func(n *network.Network, reader, west string) {
	return func(n *network.Network, reader, west string) { n.Lose(reader, west, share) }
}

// half is a way whose connections become half open.
func half(direction network.Direction) func(n *network.Network, reader, west string) {
	return func(n *network.Network, reader, west string) { n.Forget(reader, west, direction) }
}

// inWest is a fault of west. heal may be nil.
func inWest(name string, begin, heal func(west *sim.Cluster)) fault {
	row := fault{name: name, begin: func(set *sim.ClusterSet, _ string) { begin(set.Cluster("west")) }}
	if heal != nil {
		row.heal = func(set *sim.ClusterSet, _ string) { heal(set.Cluster("west")) }
	}
	return row
}

// silences are those of west, of the way to it, and of what answers in its
// place.
func silences() []fault {
	rows := []fault{
		inWest("its API server is killed", (*sim.Cluster).StopAPI, (*sim.Cluster).StartAPI),
		inWest("its API server is frozen", (*sim.Cluster).FreezeAPI, (*sim.Cluster).StartAPI),
		inWest("its etcd hangs", func(west *sim.Cluster) { west.API.Freeze() }, func(west *sim.Cluster) { west.API.Thaw() }),
		inWest("its API server cannot prove who it is",
			func(west *sim.Cluster) { west.SetImpostor(true) }, func(west *sim.Cluster) { west.SetImpostor(false) }),
		inWest("its controller is stopped", (*sim.Cluster).StopController, func(west *sim.Cluster) { west.StartController() }),
		inWest("its controller is killed", (*sim.Cluster).KillController, func(west *sim.Cluster) { west.StartController() }),
		inWest("its controller loses its rights at home",
			func(west *sim.Cluster) {
				west.API.SetFault("west", apiserver.Refusal(apierrors.NewForbidden(schema.GroupResource{}, "", nil)))
			},
			func(west *sim.Cluster) { west.API.SetFault("west", nil) }),
		onWay("the way is cut, and its connections stay", cut(network.Both, false)),
		onWay("the way is cut, and its connections end", cut(network.Both, true)),
		onWay("nothing comes from it", cut(network.FromServer, false)),
		onWay("nothing gets to it", cut(network.ToServer, true)),
		onWay("connections are refused", (*network.Network).Refuse),
		onWay("nearly all is lost", lost(0.99)),
	}
	for _, answer := range apiserver.Answers {
		rows = append(rows, fault{
			name: answer.Name, onlyReader: true, early: answer.Name == apiserver.EmptyList,
			begin: func(set *sim.ClusterSet, reader string) { set.Cluster("west").API.SetFault(reader, answer.Fault) },
			heal:  func(set *sim.ClusterSet, reader string) { set.Cluster("west").API.SetFault(reader, nil) },
		})
	}
	return rows
}

// What clients see of three services, of which north has two and west all, while
// all is well and while west is silent.
func views() (healthy, demoted map[string]string) {
	healthy = map[string]string{
		"web":  "north/10.66.0.1 west/10.65.0.1 -> VIP",
		"solo": "west/10.65.0.2 -> VIP",
		"db":   "north/10.66.0.3 west/10.65.0.3 -> 10.65.0.3 10.66.0.3",
	}
	demoted = map[string]string{
		"web":  "north/10.66.0.1 west/10.65.0.1~ -> VIP",
		"solo": "west/10.65.0.2 -> VIP",
		"db":   "north/10.66.0.3 west/10.65.0.3~ -> 10.66.0.3",
	}
	return healthy, demoted
}

// serveAll creates what is seen in views.
func serveAll(set *sim.ClusterSet) {
	west, north := set.Cluster("west"), set.Cluster("north")
	west.Serve("web", false, "10.65.0.1")
	west.Serve("solo", false, "10.65.0.2")
	west.Serve("db", true, "10.65.0.3")
	north.Serve("web", false, "10.66.0.1")
	north.Serve("db", true, "10.66.0.3")
	for _, each := range []string{"web", "solo", "db"} {
		west.Export(each)
	}
	north.Export("web")
	north.Export("db")
	sim.Wait(10 * time.Second)
}

// inPairs runs a scenario for each fault, and for two at once if each has one
// reader only: then those are east and north.
func inPairs(t *testing.T, rows []fault, scenario func(t *testing.T, set *sim.ClusterSet, faults map[string]fault)) {
	t.Helper()
	for len(rows) > 0 {
		faults, name := map[string]fault{"east": rows[0]}, rows[0].name
		if len(rows) > 1 && rows[0].onlyReader && rows[1].onlyReader {
			faults["north"] = rows[1]
			name += ", and for north " + rows[1].name
		}
		rows = rows[len(faults):]
		t.Run(name, func(t *testing.T) {
			sim.Run(t, []string{"east", "west", "north"}, func(t *testing.T, set *sim.ClusterSet) { scenario(t, set, faults) })
		})
	}
}

// TestSilence: whatever makes a member silent, nothing of it is removed. It is
// demoted after 30 s and not before, changes of others apply at once, a restart
// of its reader changes nothing, and all is as before when it is heard again.
func TestSilence(t *testing.T) {
	inPairs(t, silences(), func(t *testing.T, set *sim.ClusterSet, faults map[string]fault) {
		healthy, demoted := views()
		serveAll(set)
		expect(t, set.Cluster("east"), healthy)

		for reader, row := range faults {
			row.begin(set, reader)
		}
		sim.Wait(18 * time.Second)
		for reader, row := range faults {
			if !row.early {
				expect(t, set.Cluster(reader), healthy)
			}
		}
		sim.Wait(15 * time.Second)
		for reader := range faults {
			expect(t, set.Cluster(reader), demoted)
			set.Cluster(reader).StopController()
			set.Cluster(reader).StartController()
		}
		set.Cluster("north").SetEndpoints("db", "10.66.0.9")
		set.Cluster("west").SetEndpoints("solo", "10.65.0.9")
		demoted["db"] = "north/10.66.0.9 west/10.65.0.3~ -> 10.66.0.9"
		sim.Wait(10 * time.Second)
		for reader := range faults {
			expect(t, set.Cluster(reader), demoted)
		}

		for reader, row := range faults {
			row.heal(set, reader)
		}
		sim.Wait(time.Minute)
		healthy["db"] = "north/10.66.0.9 west/10.65.0.3 -> 10.65.0.3 10.66.0.9"
		healthy["solo"] = "west/10.65.0.9 -> VIP"
		for _, each := range set.Clusters() {
			expect(t, each, healthy)
		}
	})
}

// TestNoSilence: what delays a member or makes it connect again is no reason to
// demote it.
func TestNoSilence(t *testing.T) {
	rows := []fault{
		onWay("nothing gets to it, and its heartbeats arrive", cut(network.ToServer, false)),
		onWay("its connections are reset", (*network.Network).Reset),
		onWay("its connections are half open", half(network.Both)),
		onWay("its connections are half open in one direction", half(network.FromServer)),
		onWay("a fifth of all is lost", lost(0.2)),
		onWay("all is late", func(n *network.Network, reader, west string) { n.Delay(reader, west, time.Second, time.Second) }),
		inWest("it answers slowly", func(west *sim.Cluster) { west.API.SetFault("", apiserver.Slow(3*time.Second)) }, nil),
		inWest("its API server restarts", func(west *sim.Cluster) {
			west.StopAPI()
			sim.Wait(10 * time.Second)
			west.StartAPI()
		}, nil),
		inWest("its API server is compacted and restarts", func(west *sim.Cluster) {
			west.API.Compact()
			west.API.Restart()
		}, nil),
		inWest("its controller is killed and restarts", func(west *sim.Cluster) {
			west.KillController()
			sim.Wait(10 * time.Second)
			west.StartController()
		}, nil),
	}
	for _, wrong := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		rows = append(rows, fault{name: "the clock of its reader is wrong by " + wrong.String(), begin: func(set *sim.ClusterSet, reader string) {
			set.Cluster("west").StopController()
			set.Cluster("west").StartController(sim.WithClock(-wrong))
			set.Cluster(reader).StopController()
			set.Cluster(reader).StartController(sim.WithClock(wrong))
		}})
	}
	inPairs(t, rows, func(t *testing.T, set *sim.ClusterSet, faults map[string]fault) {
		healthy, _ := views()
		serveAll(set)
		for reader, row := range faults {
			row.begin(set, reader)
		}
		for range 20 {
			for reader := range faults {
				expect(t, set.Cluster(reader), healthy)
			}
		}
		for reader, row := range faults {
			if row.heal != nil {
				row.heal(set, reader)
			}
		}
		set.Cluster("west").SetEndpoints("solo", "10.65.0.9")
		sim.Wait(30 * time.Second)
		healthy["solo"] = "west/10.65.0.9 -> VIP"
		expect(t, set.Cluster("east"), healthy)
	})
}

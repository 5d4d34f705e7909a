// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/scenario"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// A fault affects west, or the way from east to west.
type fault struct {
	name        string
	begin, heal func(set *sim.ClusterSet)
}

// onWay is a fault of the way from east to west.
func onWay(name string, begin func(n *network.Network, reader, west string)) fault {
	return fault{
		name:  name,
		begin: func(set *sim.ClusterSet) { begin(set.Network, "east", "west") },
		heal:  func(set *sim.ClusterSet) { set.Network.Restore("east", "west") },
	}
}

// cut returns a fault that cuts a direction of a way.
func cut(direction network.Direction, reset bool) func(n *network.Network, reader, west string) {
	return func(n *network.Network, reader, west string) {
		n.Cut(reader, west, direction)
		if reset {
			n.Reset(reader, west)
		}
	}
}

// inWest is a fault of west.
func inWest(name string, begin, heal func(west *sim.Cluster)) fault {
	return fault{
		name:  name,
		begin: func(set *sim.ClusterSet) { begin(set.Cluster("west")) },
		heal:  func(set *sim.ClusterSet) { heal(set.Cluster("west")) },
	}
}

// hangingWatches drops watch requests on connections that still answer pings. A dropped request is never answered.
func hangingWatches(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
	if req.URL.Query().Get("watch") != "" {
		return apiserver.Hang(req, serve)
	}
	return serve(req)
}

// nothing is the heal function of faults that heal by themselves.
func nothing(*sim.Cluster) {}

// silences returns the faults that end west's heartbeats: of west, of the way to it, and of servers that answer in its
// place. In test/scenario, the controller stops, or the way is cut and its connections end.
func silences() []fault {
	rows := []fault{
		inWest("its API server is killed", (*sim.Cluster).StopAPI, (*sim.Cluster).StartAPI),
		inWest("its API server is killed, and compacts", (*sim.Cluster).StopAPI, func(west *sim.Cluster) {
			west.API.Compact()
			west.StartAPI()
		}),
		inWest("its API server is frozen", (*sim.Cluster).FreezeAPI, (*sim.Cluster).StartAPI),
		inWest("its etcd hangs", func(west *sim.Cluster) { west.API.Freeze() },
			func(west *sim.Cluster) { west.API.Thaw() }),
		inWest("its API server cannot prove who it is",
			func(west *sim.Cluster) { west.SetImpostor(true) }, func(west *sim.Cluster) { west.SetImpostor(false) }),
		inWest("its controller loses its rights at home",
			func(west *sim.Cluster) {
				west.API.SetFault("west", forbidden)
			},
			func(west *sim.Cluster) { west.API.SetFault("west", nil) }),
		inWest("its watches get no answer",
			func(west *sim.Cluster) { west.API.SetFault("east", hangingWatches) },
			func(west *sim.Cluster) { west.API.SetFault("east", nil) }),
		onWay("the way is cut, and its connections stay", cut(network.Both, false)),
		onWay("nothing comes from it", cut(network.FromServer, false)),
		onWay("nothing gets to it", cut(network.ToServer, true)),
		onWay("connections are refused", (*network.Network).Refuse),
	}
	for _, answer := range apiserver.Answers {
		// Its own controller and DNS get the answer, too. That there is none is noticed only by connections over the network.
		clients := ""
		if answer.Name == "no answer" {
			clients = "east"
		}
		rows = append(rows, inWest(answer.Name,
			func(west *sim.Cluster) { west.API.SetFault(clients, answer.Fault) },
			func(west *sim.Cluster) { west.API.SetFault(clients, nil) }))
	}
	return rows
}

// TestSilence: every fault that makes a member unreachable has the same consequences.
func TestSilence(t *testing.T) {
	for _, row := range silences() {
		row.run(t, scenario.Silence)
	}
}

// TestNoSilence: faults that delay a member or make readers reconnect do not demote it.
func TestNoSilence(t *testing.T) {
	for _, row := range []fault{
		onWay("nothing gets to it, and its heartbeats arrive", cut(network.ToServer, false)),
		onWay("its connections are reset", (*network.Network).Reset),
		onWay("its connections are half open", func(n *network.Network, reader, west string) { n.Forget(reader, west, network.Both) }),
		onWay("its connections are half open in one direction",
			func(n *network.Network, reader, west string) { n.Forget(reader, west, network.FromServer) }),
		onWay("all is late",
			func(n *network.Network, reader, west string) { n.Delay(reader, west, 1500*time.Millisecond) }),
		inWest("it answers slowly",
			func(west *sim.Cluster) { west.API.SetFault("east", apiserver.Slow(3*time.Second)) }, nothing),
		inWest("its API server restarts", func(west *sim.Cluster) {
			west.StopAPI()
			sim.Wait(10 * time.Second)
			west.StartAPI()
		}, nothing),
		inWest("its API server is compacted and restarts", func(west *sim.Cluster) {
			west.API.Compact()
			west.API.Restart()
		}, nothing),
	} {
		row.run(t, scenario.NoSilence)
	}
}

// run runs a scenario with the fault.
func (f fault) run(t *testing.T, kind func(begin, heal func(*scenario.Set)) scenario.Scenario) {
	t.Run(f.name, func(t *testing.T) {
		onNodes(t, three, func(set *sim.ClusterSet) {
			kind(func(*scenario.Set) { f.begin(set) }, func(*scenario.Set) { f.heal(set) }).On(set.Set)
		})
	})
}

// TestScenarios runs all scenarios on simulated clusters. test/controller runs them on real control planes.
func TestScenarios(t *testing.T) {
	for _, each := range scenario.All {
		t.Run(each.Name, func(t *testing.T) {
			onNodes(t, each.Clusters, func(set *sim.ClusterSet) { each.On(set.Set) })
		})
	}
}

// onNodes runs a scenario on clusters that have nodes in two zones.
func onNodes(t *testing.T, names []string, run func(*sim.ClusterSet)) {
	sim.RunIdle(t, names, func(t *testing.T, set *sim.ClusterSet) {
		for _, c := range set.Clusters() {
			for _, zone := range []string{"-a", "-b"} {
				c.PutNode(c.Name+zone, c.Name+zone)
			}
		}
		run(set)
	})
}

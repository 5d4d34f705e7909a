// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// lists returns the number of lists of EndpointSlices that a cluster requested from another.
func lists(from, to *sim.Cluster) int { return requestsOf(from, to.Name)["list endpointslices"] }

// TestResumedWatches breaks the watches of a member while one of its services changes every second. The watches resume without
// a list, unless the API server was unavailable or has compacted the missed events, or its etcd is restored from a backup.
func TestResumedWatches(t *testing.T) {
	for _, test := range []struct {
		name  string
		lists int
		// run breaks the watches; change changes the service once a second for a number of seconds.
		run func(n *network.Network, west *sim.Cluster, change func(seconds int))
	}{
		{"one of several API servers restarts", 0, func(_ *network.Network, west *sim.Cluster, _ func(int)) { west.API.Restart() }},
		{"the connection is reset", 0, func(n *network.Network, _ *sim.Cluster, _ func(int)) { n.Reset("east", "west") }},
		{"the API server hangs for a minute", 1, func(_ *network.Network, west *sim.Cluster, _ func(int)) {
			west.FreezeAPI()
			sim.Wait(time.Minute)
			west.StartAPI()
		}},
		{"what was missed is compacted", 1, func(n *network.Network, west *sim.Cluster, change func(int)) {
			n.Cut("east", "west", network.Both)
			change(30)
			west.API.Compact()
			n.Restore("east", "west")
		}},
		{"a restored etcd", 1, func(_ *network.Network, west *sim.Cluster, change func(int)) {
			backup := west.API.Backup()
			change(20)
			west.StopAPI()
			sim.Wait(time.Second)
			west.API.Restore(backup, false)
			west.StartAPI()
		}},
		{"a restored etcd whose revisions continue, and that went further meanwhile", 1, func(n *network.Network, west *sim.Cluster, change func(int)) {
			backup := west.API.Backup()
			change(20)
			n.Cut("east", "west", network.Both)
			west.API.Restore(backup, true)
			change(90)
			n.Restore("east", "west")
		}},
		{"an etcd that is restored to a second ago", 1, func(_ *network.Network, west *sim.Cluster, _ func(int)) {
			backup := west.API.Backup()
			west.Withdraw("other") // after the backup was made
			sim.Wait(time.Second)
			west.API.Restore(backup, false)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
				east, west := set.Cluster("east"), set.Cluster("west")
				west.Export("web!10.65.0.1", "other!10.65.0.2")
				address := ""
				change := func(seconds int) {
					for range seconds {
						address = fmt.Sprintf("10.65.1.%d", time.Now().Unix()%200+1)
						west.SetEndpoints("web", address)
						sim.Wait(time.Second)
					}
				}
				change(20)
				before := lists(west, east)
				test.run(set.Network, west, change)
				sim.Wait(30 * time.Second)
				if got := lists(west, east) - before; got != test.lists {
					t.Errorf("east listed the slices of west %d times, want %d", got, test.lists)
				}
				expect(t, east, map[string]string{"other": "west/10.65.0.2 -> 10.65.0.2"})
				change(10)
				expect(t, east, map[string]string{"web": "west/" + address + " -> " + address})
			})
		})
	}
}

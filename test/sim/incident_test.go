// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// Incidents of other implementations of multi-cluster services, as scenarios.

// serveSome exports count headless services in west: s0, s1 and so on. It returns what clients see of them.
func serveSome(west *sim.Cluster, count int) (here map[string]string) {
	here = map[string]string{}
	for i := range count {
		service := fmt.Sprintf("s%d", i)
		west.Export(fmt.Sprintf("%s!10.65.0.%d", service, i))
		here[service] = fmt.Sprintf("west/10.65.0.%d -> 10.65.0.%d", i, i)
	}
	sim.Wait(10 * time.Second)
	return here
}

// TestWithdrawn (cilium/cilium#37231, #47793): a reader does not run or is cut off while exports are withdrawn, or a
// cluster publishes an empty set of exports although its heartbeat continues. A withdrawal that a watch delivers is
// believed at once, even the last one. A list without some exports is believed with the next heartbeat, and an empty
// list after five minutes, in which it can be corrected.
func TestWithdrawn(t *testing.T) {
	for _, row := range []struct {
		name            string
		miss            func(set *sim.ClusterSet, withdraw func())
		count, withdraw int
		kept, within    time.Duration
	}{
		{"the last while the reader watches", func(_ *sim.ClusterSet, withdraw func()) { withdraw() }, 1, 1, 0, 0},
		{"one of two while the reader does not run", func(set *sim.ClusterSet, withdraw func()) {
			set.Cluster("east").Stop()
			withdraw()
			sim.Wait(time.Minute)
			set.Cluster("east").Start()
		}, 2, 1, 0, 15 * time.Second},
		{"the last while the reader is cut off", func(set *sim.ClusterSet, withdraw func()) {
			set.Network.Cut("east", "west", network.Both)
			set.Network.Reset("east", "west")
			withdraw()
			sim.Wait(time.Minute)
			set.Network.Restore("east", "west")
		}, 1, 1, 0, 6 * time.Minute},
		{"none, says a list for a while", func(set *sim.ClusterSet, _ func()) {
			empty(set.Cluster("west"))
			sim.Wait(4 * time.Minute)
			set.Cluster("west").API.SetFault("east", nil)
		}, 2, 0, 10 * time.Minute, 0},
		{
			"all, says a list that stays so", func(set *sim.ClusterSet, _ func()) { empty(set.Cluster("west")) }, 5, 5,
			4 * time.Minute, 2 * time.Minute,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
				want := serveSome(set.Cluster("west"), row.count)
				row.miss(set, func() {
					for i := range row.withdraw {
						set.Cluster("west").Withdraw(fmt.Sprintf("s%d", i))
					}
				})
				for end := time.Now().Add(row.kept); time.Now().Before(end); sim.Wait(time.Minute) {
					expect(t, set.Cluster("east"), want)
				}
				for i := range row.withdraw {
					want[fmt.Sprintf("s%d", i)] = "none -> NXDOMAIN"
				}
				sim.Wait(row.within)
				expect(t, set.Cluster("east"), want)
			})
		})
	}
}

// empty makes west send empty lists of EndpointSlices to east, and ends the watch so that east must list.
func empty(west *sim.Cluster) {
	west.API.SetFault("east", apiserver.WithoutSlices)
	sim.Wait(10 * time.Second)
	west.API.Compact()
	west.API.Restart()
}

// TestRotatedCredentials (istio/istio#57269, #60612): a member's Secret is rotated repeatedly. Each credential is used
// without a restart, nothing remains of previous credentials, and no answer changes.
func TestRotatedCredentials(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		here := serveSome(west, 1)
		count := func() (goroutines, connections int) {
			sim.Wait(2 * time.Minute)
			return runtime.NumGoroutine(), set.Network.Connections("east", "west")
		}
		goroutines, connections := count()
		for i := range 300 {
			east.PutSecret("member-west", "west", west.Kubeconfig(fmt.Sprintf("east-%d", i)))
			sim.Wait(time.Duration(i%10) * 100 * time.Millisecond) // even while it connects
		}
		expect(t, east, here)
		if now, open := count(); now > goroutines+5 || open != connections {
			t.Errorf("%d goroutines and %d connections, before %d and %d", now, open, goroutines, connections)
		}
		west.SetEndpoints("s0", "10.65.9.9")
		expect(t, east, map[string]string{"s0": "west/10.65.9.9 -> 10.65.9.9"})
	})
}

// TestTwoWriters (AWS, us-east-1, 2025): two DNS writers each removed the addresses of the other. Here another writer
// empties and deletes the copied slices, and the former leader of two controllers resumes late. Finally, clients must
// see the exported endpoints.
func TestTwoWriters(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		here, slices := serveSome(west, 2), discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
		east.Stop()
		first := east.StartReplica(replica("first"))
		sim.Wait(10 * time.Second)
		east.StartReplica(replica("second"))
		for range 2 {
			for _, remove := range []bool{false, true} {
				for service := range here {
					name := east.Slices(service)[0].Name
					if east.Patch(slices, name, `{"endpoints":[]}`); remove {
						east.Must(east.Kube.DiscoveryV1().EndpointSlices(sim.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
					}
				}
				sim.Wait(10 * time.Second)
				expect(t, east, here)
			}
			first.Freeze()
			sim.Wait(20 * time.Second)
			west.SetEndpoints("s0", "10.65.7.7")
			here["s0"] = "west/10.65.7.7 -> 10.65.7.7"
			expect(t, east, here)
			before := len(first.Writes())
			first.Thaw()
			sim.Wait(20 * time.Second)
			expect(t, east, here)
			if writes := first.Writes()[before:]; len(writes) > 0 {
				t.Errorf("the former leader wrote %v", writes)
			}
		}
	})
}

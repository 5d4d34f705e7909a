// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// TestDNSWithoutItsAPIServer: whatever the API server answers, or if it does not, DNS keeps answering from its last
// known state. After the API server works again, DNS answers with the changes.
func TestDNSWithoutItsAPIServer(t *testing.T) {
	rows := []fault{
		inWest("it is killed", (*sim.Cluster).StopAPI, (*sim.Cluster).StartAPI),
		inWest("it is frozen", (*sim.Cluster).FreezeAPI, (*sim.Cluster).StartAPI),
		inWest("it is killed, and compacts", (*sim.Cluster).StopAPI, func(west *sim.Cluster) {
			west.API.Compact()
			west.StartAPI()
		}),
	}
	for _, answer := range apiserver.Answers {
		switch answer.Name {
		case apiserver.EmptyList: // DNS believes the local API server
		case "a redirect", "no answer": // these need a connection over the network, which DNS does not use here
		default:
			rows = append(rows, inWest(answer.Name,
				func(west *sim.Cluster) { west.API.SetFault("west", answer.Fault) },
				func(west *sim.Cluster) { west.API.SetFault("west", nil) }))
		}
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			sim.Run(t, []string{"west"}, func(t *testing.T, set *sim.ClusterSet) {
				west := set.Cluster("west")
				here := serveSome(west, 2)
				west.Stop() // otherwise the controller would change the slices, too
				row.begin(set)
				edit(t, west, false,
					func(slice *discoveryv1.EndpointSlice) { slice.Endpoints[0].Addresses[0] = "10.65.9.9" })
				changed := map[string]string{}
				for service, seen := range here {
					changed[service] = "west/10.65.9.9 -> " + seen[len("west/10.65.0.0 -> "):]
				}
				for range 20 {
					expect(t, west, changed)
				}
				row.heal(set)
				sim.Wait(20 * time.Second)
				for service := range here {
					changed[service] = "west/10.65.9.9 -> 10.65.9.9"
				}
				expect(t, west, changed)
			})
		})
	}
}

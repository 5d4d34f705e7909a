// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// TestDNSWithoutItsAPIServer: whatever the API server answers, or does not, DNS answers from what it knows, for however
// long, and its states say of when that is. What changed meanwhile is answered once the API server works again.
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
		case apiserver.EmptyList: // it is the word of the cluster itself
		case "a redirect", "no answer": // DNS is not connected over the network here, which has a say in these
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
				here, _ := serveSome(west, 2)
				west.StopController() // it would have a say, too
				sim.Wait(5 * time.Minute)
				expectStates(t, west, true, time.Now().Add(-2*time.Minute)) // by bookmarks alone

				row.begin(set)
				began := time.Now()
				edit(t, west, false,
					func(slice *discoveryv1.EndpointSlice) { slice.Endpoints[0].Addresses[0] = "10.65.9.9" })
				changed := map[string]string{}
				for service, seen := range here {
					changed[service] = "west/10.65.9.9 -> " + seen[len("west/10.65.0.0 -> "):]
				}
				for range 20 {
					expect(t, west, changed)
				}
				expectStates(t, west, row.name == "it is frozen", began.Add(-2*time.Minute))
				row.heal(set)
				sim.Wait(20 * time.Second)
				for service := range here {
					changed[service] = "west/10.65.9.9 -> 10.65.9.9"
				}
				expect(t, west, changed)
				sim.Wait(2 * time.Minute)
				expectStates(t, west, true, began.Add(time.Minute))
			})
		})
	}
}

// expectStates asserts whether the watches of DNS are healthy, and that they are from after a time.
func expectStates(t *testing.T, c *sim.Cluster, healthy bool, after time.Time) {
	t.Helper()
	for resource, state := range c.DNS.States() {
		if state.Healthy != healthy || state.Synced.Before(after) {
			t.Errorf("at %s: %s %+v, want healthy %v and synced after %s", time.Now().Format(time.TimeOnly), resource, state,
				healthy, after.Format(time.TimeOnly))
		}
	}
}

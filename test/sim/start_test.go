// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// TestStartWhileAPIIsAway starts the controller while its API server refuses all requests, for as long as a backoff
// needs to come to its longest delay. Once the API server answers, all is published within seconds.
func TestStartWhileAPIIsAway(t *testing.T) {
	for _, answer := range apiserver.Answers[:5] {
		t.Run(answer.Name, func(t *testing.T) {
			sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
				east, west := set.Cluster("east"), set.Cluster("west")
				west.Serve("web", false, "10.65.0.1")
				west.Export("web")
				sim.Wait(3 * time.Second)
				west.StopController()
				west.API.SetFault(west.Name, answer.Fault)
				west.StartController()
				sim.Wait(5 * time.Minute)
				west.API.SetFault(west.Name, nil)
				west.SetEndpoints("web", "10.65.0.2")
				sim.Wait(12 * time.Second)
				expect(t, east, map[string]string{"web": "west/10.65.0.2 -> VIP"})
			})
		})
	}
}

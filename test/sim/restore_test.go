// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestRestoredAPIServer restores the API server of a cluster from a backup. Its revisions begin again below those that
// watches are at: the controller, DNS and the other members must not wait until they are reached again.
func TestRestoredAPIServer(t *testing.T) {
	for _, restored := range []string{"east", "west"} {
		t.Run(restored, func(t *testing.T) {
			sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
				east, west := set.Cluster("east"), set.Cluster("west")
				west.Serve("web", false, "10.65.0.1")
				west.Serve("db", true, "10.65.0.1")
				west.Export("web")
				west.Export("db")
				sim.Wait(10 * time.Second)
				backup := set.Cluster(restored).API.Backup()
				for i := range 20 {
					west.SetEndpoints("db", fmt.Sprintf("10.65.0.%d", i+2))
					west.SetEndpoints("web", fmt.Sprintf("10.65.0.%d", i+2))
					sim.Wait(time.Second)
				}
				set.Cluster(restored).API.Restore(backup)
				sim.Wait(20 * time.Second)
				address := "10.65.0.21"
				if restored == west.Name {
					address = "10.65.0.1"
				}
				for _, each := range set.Clusters() {
					expect(t, each, map[string]string{
						"web": "west/" + address + " -> VIP", "db": "west/" + address + " -> " + address,
					})
				}
				west.SetEndpoints("db", "10.65.0.99")
				expect(t, east, map[string]string{"db": "west/10.65.0.99 -> 10.65.0.99"})
			})
		})
	}
}

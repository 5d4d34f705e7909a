// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestKilledAtEachWrite kills the controller of east at each write of a scenario that exports, imports, changes and
// withdraws. A second later, another process starts. The result must be correct.
func TestKilledAtEachWrite(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		for i, each := range set.Clusters() {
			each.Serve(fmt.Sprintf("web:10.6%d.0.1", i), fmt.Sprintf("db!10.6%d.0.2", i))
		}
		west.PutExport("web", "{}") // while west exports a service, its lists are believed
		killed := true
		ends := func(want map[string]string) {
			for range 8 {
				sim.Wait(time.Second)
				if !east.Controller.Running() {
					killed = true
					east.Start()
				}
			}
			expect(t, east, want)
		}
		for number := 0; killed; number++ { // at write 0 the controller is not killed
			killed = number == 0
			east.Controller.KillAt(number)
			east.PutExport("web", "{}")
			west.PutExport("db", "{}")
			west.SetEndpoints("web", "10.61.0.1", "10.61.0.3")
			ends(map[string]string{"web": "east/10.60.0.1 west/10.61.0.1 west/10.61.0.3 -> VIP", "db": "west/10.61.0.2 -> 10.61.0.2"})
			west.SetEndpoints("web", "10.61.0.1")
			west.Withdraw("db")
			east.Withdraw("web")
			ends(map[string]string{"web": "west/10.61.0.1 -> VIP", "db": "none -> NXDOMAIN"})
			t.Logf("killed at write %d: %t", number, killed)
		}
	})
}

// replica makes a process take part in leader election.
func replica(identity string) func(*controller.Options) {
	return func(options *controller.Options) { options.LeaderElection, options.Identity = true, identity }
}

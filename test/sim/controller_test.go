// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestKilledAtEachWrite kills the controller of east once at each of its writes of a scenario that exports, imports,
// changes and withdraws. Another process takes its place a second later. All that exists in the end, and in between, is
// what exists without it.
func TestKilledAtEachWrite(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		for i, each := range set.Clusters() {
			each.Serve(fmt.Sprintf("web:10.6%d.0.1", i), fmt.Sprintf("db!10.6%d.0.2", i))
		}
		west.PutExport("web", "{}") // as long as it exports one service, its lists are believed
		// advance lets time pass, and starts a controller in place of one that was killed.
		killed := false
		advance := func(duration time.Duration) {
			for end := time.Now().Add(duration); time.Now().Before(end); sim.Wait(time.Second) {
				if !east.Controller.Running() {
					killed = true
					east.Start()
				}
			}
		}
		story := func() (states []string) {
			settled := func() { advance(8 * time.Second); states = append(states, east.State()) }
			east.PutExport("web", "{}")
			west.PutExport("db", "{}")
			west.SetEndpoints("web", "10.61.0.1", "10.61.0.3")
			settled()
			west.SetEndpoints("web", "10.61.0.1")
			west.Withdraw("db")
			east.Withdraw("web")
			settled()
			return states
		}
		advance(10 * time.Second)
		want := story()
		if imports := `/v1beta1","kind":"ServiceImport"`; strings.Count(want[0], imports) != 2 ||
			strings.Count(want[1], imports) != 1 {
			t.Fatalf("the scenario without a kill ends with\n%s", want[1])
		}
		for number := 1; ; number++ {
			killed = false
			east.Controller.KillAt(number)
			for i, state := range story() {
				if state != want[i] {
					t.Errorf("killed at write %d: part %d ends otherwise:\n%s", number, i, cmp.Diff(want[i], state))
				}
			}
			if !killed {
				t.Logf("%d writes", number-1)
				break
			}
		}
	})
}

// replica has a process take part in the election of the leader.
func replica(identity string) func(*controller.Options) {
	return func(options *controller.Options) { options.LeaderElection, options.Identity = true, identity }
}

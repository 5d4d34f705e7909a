// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestAnotherID: a controller that is started with another cluster id than before ends, so that nothing is withdrawn.
// The id is changed once the Lease of the heartbeat is deleted.
func TestAnotherID(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		west.Serve("web", false, "10.65.0.1")
		west.Export("web")
		expect(t, east, map[string]string{"web": "west/10.65.0.1 -> VIP"})
		another := func(options *controller.Options) { options.Cluster = "west2" }
		west.StopController()
		west.StartController(another)
		sim.Wait(10 * time.Minute)
		if err := west.Controller.Ended(); err == nil || !strings.Contains(err.Error(), "was west before") {
			t.Errorf("it ended with %v", err)
		}
		expect(t, east, map[string]string{"web": "west/10.65.0.1 -> VIP"})

		must(t, west.Kube.CoordinationV1().Leases(member.DefaultNamespace).Delete(t.Context(), member.HeartbeatLease,
			metav1.DeleteOptions{}))
		west.StartController(another)
		sim.Wait(time.Minute)
		if err := west.Controller.Ended(); err != nil {
			t.Errorf("once the Lease is deleted, it ended with %v", err)
		}
	})
}

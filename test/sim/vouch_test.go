// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// TestNodesForbidden: nodes may not be listed, which only hints need. A controller that restarts publishes all the same.
func TestNodesForbidden(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		for i, c := range []*sim.Cluster{east, west} {
			c.Serve("web", false, fmt.Sprintf("10.6%d.0.1", 4+i))
			c.Export("web")
		}
		expect(t, east, map[string]string{"web": "east/10.64.0.1 west/10.65.0.1 -> VIP"})
		west.StopController()
		west.API.SetFault("west", refused("nodes", http.StatusForbidden))
		west.StartController()
		sim.Wait(10 * time.Second)
		west.SetEndpoints("web", "10.65.0.2")
		expect(t, east, map[string]string{"web": "east/10.64.0.1 west/10.65.0.2 -> VIP"})
		sim.Wait(3 * time.Minute)
		expect(t, east, map[string]string{"web": "east/10.64.0.1 west/10.65.0.2 -> VIP"})
	})
}

// TestNodesAreLate: a controller that restarts knows the zones before it decides about hints, so it writes nothing.
func TestNodesAreLate(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		_, err := west.Kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: "node", Labels: map[string]string{corev1.LabelTopologyZone: "a"},
		}}, metav1.CreateOptions{})
		must(t, err)
		prefersCluster := func(o *controller.Options) { o.Prefer = "cluster" }
		west.StopController()
		west.StartController(prefersCluster)
		for i, c := range []*sim.Cluster{east, west} {
			c.Serve("web", false, fmt.Sprintf("10.6%d.0.1", 4+i))
			c.Export("web")
		}
		expect(t, west, map[string]string{"web": "east/10.64.0.1 west/10.65.0.1 -> VIP"})
		west.StopController()
		west.API.SetFault("west", func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/nodes") {
				sim.Wait(3 * time.Second)
			}
			return serve(req)
		})
		replica := west.StartReplica(prefersCluster)
		sim.Wait(time.Minute)
		if got := replica.Writes(); len(got) > 0 {
			t.Errorf("it wrote %q", got)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
)

// TestHeldSlice: a finalizer of somebody else holds the slice of an export that is withdrawn. It contributes nothing, also
// once the member is silent.
func TestHeldSlice(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		west.Serve("web", false, "10.65.0.1")
		west.Export("web")
		expect(t, east, map[string]string{"web": "west/10.65.0.1 -> VIP"})
		client := west.Kube.DiscoveryV1().EndpointSlices(sim.Namespace)
		list, err := client.List(t.Context(), metav1.ListOptions{LabelSelector: export.LabelSourceCluster + "=west"})
		must(t, err)
		if len(list.Items) != 1 {
			t.Fatalf("west publishes %d slices", len(list.Items))
		}
		_, err = client.Patch(t.Context(), list.Items[0].Name, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":["example.org/held"]}}`), metav1.PatchOptions{})
		must(t, err)
		west.Withdraw("web")
		sim.Wait(10 * time.Second)
		expect(t, east, map[string]string{"web": "-> NXDOMAIN"})
		set.Network.Cut("east", "west", network.Both)
		east.StopController()
		east.StartController()
		sim.Wait(time.Minute)
		expect(t, east, map[string]string{"web": "-> NXDOMAIN"})
	})
}

// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

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

// TestUnreadableImport: an import that cannot be decoded stays with what it owns, and what its cluster publishes goes on.
func TestUnreadableImport(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		for i, c := range set.Clusters() {
			c.Serve("db", false, fmt.Sprintf("10.6%d.0.1", 4+i))
			c.Export("db")
		}
		both := map[string]string{"db": "east/10.64.0.1 west/10.65.0.1 -> VIP"}
		expect(t, east, both)
		expect(t, west, both)
		imports := east.Dynamic.Resource(schema.GroupVersionResource{
			Group: v1beta1.GroupName, Version: "v1beta1", Resource: v1beta1.ServiceImportPluralName,
		}).Namespace(sim.Namespace)
		_, err := imports.Patch(t.Context(), "db", types.MergePatchType,
			[]byte(`{"spec":{"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":"soon"}}}}`), metav1.PatchOptions{})
		must(t, err)
		for _, restarts := range []bool{false, true} {
			if restarts {
				east.StopController()
				east.StartController()
			}
			sim.Wait(5 * time.Second)
			address := map[bool]string{false: "10.64.0.2", true: "10.64.0.3"}[restarts]
			east.SetEndpoints("db", address)
			sim.Wait(30 * time.Second)
			expect(t, west, map[string]string{"db": "east/" + address + " west/10.65.0.1 -> VIP"})
			if got, want := east.Endpoints("db"), "east/"+address+" west/10.65.0.1"; got != want {
				t.Errorf("east has %q, want %q", got, want)
			}
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

var imports = schema.GroupVersionResource{Group: v1beta1.GroupName, Version: "v1beta1", Resource: v1beta1.ServiceImportPluralName}

// TestUnreadableImport: an import whose spec cannot be decoded is written anew, with its IP.
func TestUnreadableImport(t *testing.T) {
	sim.Run(t, []string{"east"}, func(t *testing.T, set *sim.ClusterSet) {
		east := set.Cluster("east")
		east.Serve("db", false, "10.64.0.1")
		east.Export("db")
		expect(t, east, map[string]string{"db": "east/10.64.0.1 -> VIP"})
		ip, of := east.DNS.Text("db", sim.Namespace), east.Dynamic.Resource(imports).Namespace(sim.Namespace)
		_, err := of.Patch(t.Context(), "db", types.MergePatchType,
			[]byte(`{"spec":{"ports":"none","sessionAffinityConfig":{"clientIP":{"timeoutSeconds":"soon"}}}}`), metav1.PatchOptions{})
		must(t, err)
		sim.Wait(5 * time.Second)
		expect(t, east, map[string]string{"db": "east/10.64.0.1 -> VIP"})
		written, err := of.Get(t.Context(), "db", metav1.GetOptions{})
		must(t, err)
		ports, _, err := unstructured.NestedSlice(written.Object, "spec", "ports")
		if got := east.DNS.Text("db", sim.Namespace); err != nil || len(ports) != 1 || got != ip {
			t.Errorf("db resolves to %s, and was %s; its ports are %v, %v", got, ip, ports, err)
		}
	})
}

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

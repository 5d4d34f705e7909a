// SPDX-License-Identifier: Apache-2.0

package local

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// TestServicesAreReadWithoutTheirEndpoints: finding the services decodes no endpoints.
func TestServicesAreReadWithoutTheirEndpoints(t *testing.T) {
	c := New(fake.NewClientset(), &informer.FreshnessGate{}, "", "")
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "a", Labels: map[string]string{
		export.LabelService: "web", export.LabelSliceManagedBy: export.Manager, export.LabelSourceCluster: "west",
	}}}
	for range 1000 {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"192.0.2.1"}})
	}
	must(t, c.EndpointSlices.Indexer().Add(export.Pack(slice)))
	web := types.NamespacedName{Namespace: "demo", Name: "web"}
	if in := c.ManagedServices(); len(in) != 1 || in[0] != web {
		t.Errorf("the services are %v", in)
	}
	if _, found := c.ServicesFrom("west")[web]; !found || len(c.ServicesFrom("east")) > 0 {
		t.Errorf("the services of west are %v", c.ServicesFrom("west"))
	}
	if got, want := c.Imported("west")[web], limits.WeightOf(slice); got != want {
		t.Errorf("the copies weigh %v, want %v", got, want)
	}
	for name, read := range map[string]func(){
		"of a cluster": func() { c.ServicesFrom("west") }, "of all": func() { c.ManagedServices() },
	} {
		if allocations := testing.AllocsPerRun(10, read); allocations > 100 {
			t.Errorf("to read the services %s takes %v allocations", name, allocations)
		}
	}
}

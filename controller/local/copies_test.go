// SPDX-License-Identifier: Apache-2.0

package local

import (
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// copiesOf makes copies of slices, each "name" or "name@uid". A copy with the uid "deleted" is being deleted.
func copiesOf(text string) []*discoveryv1.EndpointSlice {
	var copies []*discoveryv1.EndpointSlice
	for _, word := range strings.Fields(text) {
		name, uid, _ := strings.Cut(word, "@")
		copies = append(copies, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(uid), Labels: map[string]string{export.LabelSourceCluster: "west"},
		}})
		if uid == "deleted" {
			copies[len(copies)-1].DeletionTimestamp = &metav1.Time{}
		}
	}
	return copies
}

func textOf(copies []*discoveryv1.EndpointSlice) string {
	var words []string
	for _, slice := range copies {
		words = append(words, strings.TrimSuffix(slice.Name+"@"+string(slice.UID), "@"))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// TestCopies plays reconciles of one service.
func TestCopies(t *testing.T) {
	web := types.NamespacedName{Namespace: "demo", Name: "web"}
	c := New(fake.NewClientset(), &informer.FreshnessGate{}, "", "")
	pass := func(existing, want string) {
		t.Helper()
		copies := c.Copies(web, copiesOf(existing))["west"]
		if got := textOf(copies); got != want {
			t.Errorf("copies of %q: got %q, want %q", existing, got, want)
		}
		c.Use(web, copies)
	}
	pass("", "")
	pass("a b", "a b")
	pass("a b@deleted", "a b") // b has a finalizer
	pass("b", "a b")           // a was collected
	pass("", "a b")            // and b
	pass("a@2 c", "a@2 b c")   // a is back, and is the copy that exists
	if got := c.ServicesFrom("west"); len(got) != 1 || len(c.Imported("west")) != 1 || len(c.Imported("north")) != 0 {
		t.Errorf("west has %v", got)
	}
	// Copies that were not used do not come back.
	c.Use(web, copiesOf("c"))
	pass("", "c")
	c.Use(web, nil) // the cluster left
	pass("", "")
	c.used.Range(func(service, _ any) bool {
		t.Errorf("%v is left", service)
		return true
	})
}

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

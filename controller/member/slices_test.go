// SPDX-License-Identifier: Apache-2.0

package member

import (
	"slices"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

func slice(name, service, version string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: name, UID: types.UID(name), ResourceVersion: version,
			Labels:        map[string]string{v1beta1.LabelServiceName: service, "a": "b"},
			Annotations:   map[string]string{"a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Ports:     []discoveryv1.EndpointPort{{Name: ptr.To("http")}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}, NodeName: ptr.To("n")}},
	}
}

// replace lists what the server has.
func replace(t *testing.T, store *Member, server *pages) {
	t.Helper()
	if _, err := connected(t, store, "https://west", server.serve(t)).list(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestSliceStore plays lists and watches, and tells after each step which services were told, and what is held.
func TestSliceStore(t *testing.T) {
	var told []string
	lists := 0
	store := (&surroundings{
		serviceChanged: func(service types.NamespacedName) { told = append(told, service.Name) },
		memberChanged:  func(string) { lists++ },
	}).west()
	list := func(all ...*discoveryv1.EndpointSlice) func() {
		return func() { replace(t, store, &pages{slices: all, most: pageSize}) }
	}
	step := func(name string, do func(), wantTold, wantHeld []string) {
		t.Helper()
		told = nil
		do()
		slices.Sort(told)
		if !slices.Equal(told, wantTold) {
			t.Errorf("%s: told %v, want %v", name, told, wantTold)
		}
		var held []string
		for _, service := range store.Services() {
			for _, each := range store.Slices(service) {
				held = append(held, service.Name+"/"+each.Name+"@"+each.ResourceVersion)
			}
		}
		slices.Sort(held)
		if !slices.Equal(held, wantHeld) {
			t.Errorf("%s: holds %v, want %v", name, held, wantHeld)
		}
		if keys := store.indexer.ListKeys(); store.Published() != len(keys) {
			t.Errorf("%s: %d slices are counted, want %v", name, store.Published(), keys)
		}
	}
	service := types.NamespacedName{Namespace: "demo", Name: "mq"}
	if _, complete := store.Read(service); complete || store.Synced() {
		t.Error("synced before the first list")
	}
	step("an empty list", list(), nil, nil)
	if _, complete := store.Read(service); !complete || !store.Synced() {
		t.Error("not synced after the first list")
	}
	step("add", func() { store.put(slice("a", "web", "2")) }, []string{"web"}, []string{"web/a@2"})
	step("update", func() { store.put(slice("a", "web", "3")) }, []string{"web"}, []string{"web/a@3"})
	step("the same", func() { store.put(slice("a", "web", "3")) }, nil, []string{"web/a@3"})
	step("another service", func() { store.put(slice("b", "db", "4")) }, []string{"db"},
		[]string{"db/b@4", "web/a@3"})
	step("moved to another service", func() { store.put(slice("b", "web", "5")) },
		[]string{"db", "web"}, []string{"web/a@3", "web/b@5"})
	step("of no service", func() { store.put(slice("c", "", "6")) }, nil, []string{"web/a@3", "web/b@5"})
	step("the same list again", list(slice("a", "web", "3"), slice("b", "web", "5"), slice("c", "", "6")), nil,
		[]string{"web/a@3", "web/b@5"})
	other := slice("a", "web", "3")
	other.Endpoints[0].Addresses = []string{"192.0.2.99"}
	step("other content of the same resourceVersion, as of a restored etcd", list(other, slice("b", "web", "5")),
		[]string{"web"}, []string{"web/a@3", "web/b@5"})
	step("the same in an event", func() { store.put(slice("a", "web", "3")) }, []string{"web"}, []string{"web/a@3", "web/b@5"})
	step("a list with changes", list(slice("a", "db", "8"), slice("d", "mq", "8")), []string{"db", "mq", "web"},
		[]string{"db/a@8", "mq/d@8"})
	step("delete", func() { store.remove(slice("a", "db", "9")) }, []string{"db"}, []string{"mq/d@8"})
	step("delete what is not there", func() { store.remove(slice("z", "web", "9")) }, nil,
		[]string{"mq/d@8"})
	if lists != 1 {
		t.Errorf("told of %d lists, want the first one", lists)
	}
	for _, each := range store.Slices(service) {
		// A member that fills these would have them decoded with each look at the service.
		if each.ManagedFields != nil || each.Endpoints[0].NodeName != nil || each.Ports != nil || len(each.Labels) != 1 ||
			each.Annotations != nil {
			t.Errorf("held with more than is needed: %v", each)
		}
	}
}

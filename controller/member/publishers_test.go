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

	"github.com/clusterset-dns/clusterset-dns/controller/export"
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

// replace lists the slices of the server.
func replace(t *testing.T, store *Member, server *pages) {
	t.Helper()
	_, err := connected(t, store, "https://west", server.serve(t)).listSlices(t.Context())
	must(t, err)
}

// TestStoredFields: the fields of a slice that no reconcile needs are not stored. The handler gets the services that changed, and
// the first list.
func TestStoredFields(t *testing.T) {
	var told []string
	m := (&surroundings{
		serviceChanged: func(service types.NamespacedName) { told = append(told, service.Name) },
		memberChanged:  func(cluster string) { told = append(told, cluster) },
	}).west()
	replace(t, m, &pages{slices: []*discoveryv1.EndpointSlice{slice("a", "web", "1")}, most: pageSize})
	replace(t, m, &pages{slices: []*discoveryv1.EndpointSlice{slice("a", "web", "1")}, most: pageSize})
	m.putSlice(slice("b", "web", "2"))
	published, complete := m.Read(types.NamespacedName{Namespace: "demo", Name: "web"})
	if len(published) != 2 || !complete {
		t.Errorf("published are %v, complete: %t", published, complete)
	}
	for _, each := range export.OpenAll(published) {
		// If a member filled these, each reconcile of the service would decode them.
		if each.ManagedFields != nil || each.Endpoints[0].NodeName != nil || each.Ports != nil || len(each.Labels) != 1 ||
			each.Annotations != nil {
			t.Errorf("stored with more fields than are needed: %v", each)
		}
	}
	if m.removeSlice(slice("b", "web", "3")); !slices.Equal(told, []string{"web", "west", "web", "web"}) {
		t.Errorf("told %q", told)
	}
}

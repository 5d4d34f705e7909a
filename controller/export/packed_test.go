// SPDX-License-Identifier: Apache-2.0

package export

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestASliceIsWhatItWas: an opened slice equals the packed one, and GetObjectMeta returns its metadata.
func TestASliceIsWhatItWas(t *testing.T) {
	ordinary := publish(rich(t))[0]
	ordinary.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceImport", Name: "web", Controller: ptr.To(true)}}
	mixed := ordinary.DeepCopy()
	mixed.Finalizers, mixed.ManagedFields = []string{"f"}, []metav1.ManagedFieldsEntry{{Manager: "m"}}
	mixed.Endpoints[0].Addresses = []string{"192.0.2.1", "192.0.2.2"}
	mixed.Endpoints = append(mixed.Endpoints, discoveryv1.Endpoint{Addresses: []string{"192.0.2.3"}})
	large := ordinary.DeepCopy()
	for range 900 {
		large.Endpoints = append(large.Endpoints, mixed.Endpoints...)
	}
	for name, slice := range map[string]*discoveryv1.EndpointSlice{
		"ordinary": ordinary, "mixed": mixed, "large": large, "empty": {},
	} {
		one := Pack(slice)
		if got := one.Open(); !equality.Semantic.DeepEqual(got, slice) || !Pack(got).Equal(one) {
			t.Errorf("%s: got %v, want %v", name, got, slice)
		}
		want := &discoveryv1.EndpointSlice{ObjectMeta: slice.ObjectMeta}
		if got := one.GetObjectMeta(); !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: got the metadata %v, want %v", name, got, want)
		}
		if other := slice.DeepCopy(); len(other.Endpoints) > 0 {
			other.Endpoints[len(other.Endpoints)-1].Addresses[0] = "192.0.2.99"
			if one.Equal(Pack(other)) {
				t.Errorf("%s: another address makes no difference", name)
			}
		}
		if size := slice.Size(); len(one.data) > size+size/16+16 {
			t.Errorf("%s: takes %d bytes instead of %d", name, len(one.data), size)
		}
	}
}

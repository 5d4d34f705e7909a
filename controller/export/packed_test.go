// SPDX-License-Identifier: Apache-2.0

package export

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestASliceIsWhatItWas: an opened slice has all of what it was made from, and OpenMetadata the metadata of it.
func TestASliceIsWhatItWas(t *testing.T) {
	mixed := example()
	mixed.Finalizers, mixed.ManagedFields = []string{"f"}, []metav1.ManagedFieldsEntry{{Manager: "m"}}
	mixed.Endpoints[0].Addresses = []string{"192.0.2.1", "192.0.2.2"}
	mixed.Endpoints[1].Conditions, mixed.Endpoints[1].Hostname = discoveryv1.EndpointConditions{}, nil
	mixed.Endpoints[1].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "a"}}}
	large := example()
	for range 900 {
		large.Endpoints = append(large.Endpoints, mixed.Endpoints...)
	}
	for name, slice := range map[string]*discoveryv1.EndpointSlice{
		"ordinary": example(), "mixed": mixed, "large": large, "empty": {},
	} {
		one := Pack(slice)
		if got := one.Open(); !equality.Semantic.DeepEqual(got, slice) || !Pack(got).Equal(one) {
			t.Errorf("%s: got %v, want %v", name, got, slice)
		}
		want := &discoveryv1.EndpointSlice{ObjectMeta: slice.ObjectMeta}
		if got := one.OpenMetadata(); !equality.Semantic.DeepEqual(got, want) {
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

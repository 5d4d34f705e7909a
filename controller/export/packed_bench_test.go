// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/packed"
)

// copied is a slice of so many endpoints as an API server returns the copy of a member's slice.
func copied(i, endpoints int) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	slice.Namespace, slice.Name = "shop", fmt.Sprintf("web-%d-cluster-7-abcdefghij", i)
	slice.UID, slice.ResourceVersion = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i)), fmt.Sprint(1e6+i)
	service := fmt.Sprintf("web-%d", i)
	slice.Labels = map[string]string{
		LabelService: service, LabelSourceCluster: "cluster-7", LabelSliceManagedBy: Manager,
		LabelKubernetesService: "derived-0123456789",
	}
	slice.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](8080)}}
	view := &View{Cluster: "cluster-7", Service: types.NamespacedName{Namespace: "shop", Name: service}}
	view.Spec = &Spec{Created: created, Type: "ClusterSetIP"}
	slice.Annotations = NewEncoder(view).Annotations(&Slice{Name: slice.Name}, nil)
	for e := range endpoints {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("10.%d.%d.%d", i%250, e/250, e%250)},
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(true), Terminating: ptr.To(false)},
			Zone:       ptr.To("eu-central-1a"),
			Hints:      &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "eu-central-1a"}}},
		})
	}
	return slice
}

// BenchmarkPacked holds a copy of so many endpoints, and reads it.
func BenchmarkPacked(b *testing.B) {
	for _, endpoints := range []int{10, 100, 1000} {
		slice := copied(1, endpoints)
		one := packed.New(slice)
		b.Run(fmt.Sprint("hold/", endpoints), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				packed.New(slice)
			}
			b.ReportMetric(float64(one.Size()), "held-B")
			b.ReportMetric(float64(slice.Size()), "encoded-B")
		})
		b.Run(fmt.Sprint("read/", endpoints), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				one.Open()
			}
		})
		b.Run(fmt.Sprint("metadata/", endpoints), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				one.OpenMetadata()
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// sized are slices of 100 endpoints each, as Kubernetes makes them.
func sized(endpoints int) []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for first := 0; first < endpoints; first += 100 {
		slice := newSlice(fmt.Sprintf("web-%d", first), "http:8080/TCP", "10.1.0.1")
		endpoint := slice.Endpoints[0]
		slice.Endpoints = nil
		for i := first; i < min(first+100, endpoints); i++ {
			endpoint.Addresses = []string{fmt.Sprintf("10.%d.%d.%d", 1+i/65536, i/256%256, i%256)}
			slice.Endpoints = append(slice.Endpoints, endpoint)
		}
		all = append(all, slice)
	}
	return all
}

func BenchmarkFromService(b *testing.B) {
	for _, endpoints := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprintf("endpoints=%d", endpoints), func(b *testing.B) {
			service, exported, slices := newService("http:80/TCP"), newExport(), sized(endpoints)
			b.ReportAllocs()
			for b.Loop() {
				FromService("east", exported, service, slices)
			}
		})
	}
}

func BenchmarkFromSlices(b *testing.B) {
	for _, endpoints := range []int{10, 1000, 10000} {
		b.Run(fmt.Sprintf("endpoints=%d", endpoints), func(b *testing.B) {
			slices := publish(mustView(b, newExport(), newService("http:80/TCP"), sized(endpoints)...))
			b.ReportAllocs()
			for b.Loop() {
				FromSlices(Source{Cluster: "east"}, web, slices, nil)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// benchSlices are those of a service with so many endpoints, ten in each; those of the first half have hostnames.
func benchSlices(service string, endpoints int) []*discoveryv1.EndpointSlice {
	var all []*discoveryv1.EndpointSlice
	for start := 0; start < endpoints; start += 10 {
		cluster := []string{"east", "west"}[2*start/endpoints]
		var addresses []string
		for i := range 10 {
			addresses = append(addresses, address(start+i))
		}
		slice := sliceOf(fmt.Sprintf("%s-imported-%d", service, start), service, cluster, addresses...)
		for i := range slice.Endpoints {
			if cluster == "east" {
				slice.Endpoints[i].Hostname = new(fmt.Sprintf("db-%d", start+i))
			}
		}
		slice.Annotations[corev1.EndpointsLastChangeTriggerTime] = "2026-11-21T20:00:00.123456789Z"
		all = append(all, slice)
	}
	return all
}

// BenchmarkSliceUpdate is what an update of a slice costs from the object that a reflector gets to the answer, by the
// number of the service's endpoints.
func BenchmarkSliceUpdate(b *testing.B) {
	for _, endpoints := range []int{50, 1000, 10000} {
		b.Run(fmt.Sprint(endpoints), func(b *testing.B) {
			s := newBench(b, Options{})
			put(b, s.imports.Add(importOf("db", mcsv1beta1.Headless)))
			slices := benchSlices("db", endpoints)
			for _, slice := range slices {
				put(b, s.slices.Add(slice))
			}
			s.list()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				slice := slices[i%len(slices)]
				slice.Endpoints[0].Addresses[0] = address(1<<20 + i%(1<<20))
				put(b, s.slices.Update(slice))
				if s.drain() != 1 {
					b.Fatal("nothing was published")
				}
			}
		})
	}
}

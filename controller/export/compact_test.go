// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"runtime"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
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

// decoded is the slice as it is when it was just read.
func decoded(t testing.TB, slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	t.Helper()
	text, err := slice.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	read := &discoveryv1.EndpointSlice{}
	if err := read.Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	return read
}

func TestCompact(t *testing.T) {
	mixed := copied(1, 5)
	mixed.Endpoints[1].Addresses = []string{"10.0.0.1", "10.0.0.2"}
	mixed.Endpoints[2].Addresses, mixed.Endpoints[2].Zone = nil, nil
	mixed.Endpoints[3].Conditions.Ready, mixed.Endpoints[3].Hints = ptr.To(false), nil
	mixed.Endpoints[4].Zone, mixed.Endpoints[4].NodeName = ptr.To("eu-central-1b"), ptr.To("node-1")
	mixed.Endpoints[4].Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "eu-central-1b"}}}
	for name, slice := range map[string]*discoveryv1.EndpointSlice{
		"ordinary": copied(1, 100), "mixed": mixed, "without endpoints": copied(1, 0), "empty": {},
	} {
		want, got := decoded(t, slice), decoded(t, slice)
		for range 2 {
			Compact(got)
			diff(t, name, got, want)
		}
		if cap(got.Endpoints) > len(got.Endpoints) {
			t.Errorf("%s: room for %d endpoints more", name, cap(got.Endpoints)-len(got.Endpoints))
		}
		for i := range got.Endpoints {
			if list := got.Endpoints[i].Addresses; cap(list) > max(1, len(list)) {
				t.Errorf("%s: appending to the addresses of endpoint %d changes those of the next", name, i)
			}
		}
	}
}

// BenchmarkCompact reports the heap that an endpoint takes in slices of 50, as decoded and compact.
func BenchmarkCompact(b *testing.B) {
	const count, endpoints = 1000, 50
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	for name, change := range map[string]func(*discoveryv1.EndpointSlice){
		"decoded": func(*discoveryv1.EndpointSlice) {}, "compact": Compact,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				slices := make([]*discoveryv1.EndpointSlice, count)
				for i := range slices {
					slices[i] = decoded(b, copied(i, endpoints))
					change(slices[i])
				}
				b.ReportMetric(float64(heap()-before)/(count*endpoints), "B/endpoint")
				runtime.KeepAlive(slices)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// heap returns the live bytes on the heap.
func heap() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // a sync.Pool keeps its objects for one cycle
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// TestMemoryAtTheLimits: whatever a member sends, its slices take no more memory than its part of the limit, and their copies
// in the local cluster no more than that again.
func TestMemoryAtTheLimits(t *testing.T) {
	const limit, part = 8 << 20, 8<<20*9/16 - 8
	for name, fill := range map[string]func(*discoveryv1.EndpointSlice){
		"ordinary": func(one *discoveryv1.EndpointSlice) {
			one.Annotations[export.AnnotationSnapshotPrefix+"v1"] = strings.Repeat("s", 400)
			one.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](80)}}
			for e := range 100 {
				one.Endpoints = append(one.Endpoints, discoveryv1.Endpoint{
					Addresses: []string{fmt.Sprintf("10.%d.%d.1", e/250, e%250)}, Conditions: export.Conditions(true, true, false),
					Zone: ptr.To("eu-central-1a"), NodeName: ptr.To("node-1"),
				})
			}
		},
		"endpoints of nothing": func(one *discoveryv1.EndpointSlice) { one.Endpoints = make([]discoveryv1.Endpoint, 1000) },
		"small slices":         func(*discoveryv1.EndpointSlice) {},
		"snapshots": func(one *discoveryv1.EndpointSlice) {
			for a := range 1000 {
				one.Annotations[fmt.Sprint(export.AnnotationSnapshotPrefix, a)] = "v"
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			made := func(i int) *discoveryv1.EndpointSlice {
				one := slice(fmt.Sprintf("slice-of-a-service-%06d", i), fmt.Sprintf("service-%04d", i%1000), "1234567")
				one.UID = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
				one.AddressType, one.Endpoints, one.Annotations = discoveryv1.AddressTypeIPv4, nil, map[string]string{}
				fill(one)
				return one
			}
			of := limits.NewPool(limit)
			store := (&surroundings{}).west()
			store.Store = limits.NewStore("west", limits.Default, of, nil)
			of.SetMembers([]string{"west", "north"})
			before := heap()
			count := 3 * part / 2 / limits.WeightOf(export.Strip(made(0))).Bytes
			replace(t, store, &pages{made: made, count: count, most: pageSize})
			if full := store.Excess(); full[limits.Memory] == "" && full[limits.Endpoints] == "" {
				t.Error("no limit is met")
			}
			took := heap() - before
			counted, _ := of.Use()
			if t.Logf("%d slices, %d bytes are counted, %d are held", store.Published(), counted, took); took > part || counted > part {
				t.Errorf("%d bytes are held and %d counted, with room for %d", took, counted, part)
			}
			copies := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
				"a": func(any) ([]string, error) { return []string{"a"}, nil },
			})
			for _, service := range store.Services() {
				published, _ := store.Read(service)
				for _, copied := range export.OpenAll(published) {
					copied.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ServiceImport", Name: "x", Controller: ptr.To(true)}}
					must(t, copies.Add(export.Pack(copied)))
				}
			}
			if both := heap() - before; both > 2*part {
				t.Errorf("%d bytes with the copies, with room for %d", both, 2*part)
			}
			runtime.KeepAlive(store)
			runtime.KeepAlive(copies)
		})
	}
}

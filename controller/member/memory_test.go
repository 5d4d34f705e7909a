// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
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
	"github.com/clusterset-dns/clusterset-dns/controller/packed"
)

// endless is a server without end of slices.
type endless struct {
	pages
	make func(i int) *discoveryv1.EndpointSlice
	most int
	read int // pages
}

func (e *endless) List(_ context.Context, options metav1.ListOptions) (*discoveryv1.EndpointSliceList, error) {
	list := &discoveryv1.EndpointSliceList{}
	for i := range int(options.Limit) {
		encoded, err := e.make(e.read*int(options.Limit) + i).Marshal()
		if err != nil {
			return nil, err
		}
		decoded := discoveryv1.EndpointSlice{}
		if err := decoded.Unmarshal(encoded); err != nil {
			return nil, err
		}
		list.Items = append(list.Items, decoded)
	}
	if e.read++; e.read*int(options.Limit) < e.most {
		list.Continue = fmt.Sprint(e.read)
	}
	return list, nil
}

// heap is what is live on the heap.
func heap() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools held is garbage once more
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// TestMemoryAtTheLimits: whatever a member sends, what is held of it takes no more memory than its part of the limit,
// and its copies in the local cluster no more than that again.
func TestMemoryAtTheLimits(t *testing.T) {
	const limit = 8 << 20
	base := func(i int) *discoveryv1.EndpointSlice {
		one := slice(fmt.Sprintf("slice-of-a-service-%06d", i), fmt.Sprintf("service-%04d", i%1000), "1234567")
		one.UID = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", i))
		one.AddressType, one.Endpoints = discoveryv1.AddressTypeIPv4, nil
		return one
	}
	endpoints := func(one *discoveryv1.EndpointSlice, count int,
		change func(int, *discoveryv1.Endpoint),
	) *discoveryv1.EndpointSlice {
		for e := range count {
			endpoint := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.%d.%d.1", e/250, e%250)}}
			change(e, &endpoint)
			one.Endpoints = append(one.Endpoints, endpoint)
		}
		return one
	}
	for name, make1 := range map[string]func(int) *discoveryv1.EndpointSlice{
		"ordinary": func(i int) *discoveryv1.EndpointSlice {
			one := base(i)
			one.Annotations = map[string]string{export.AnnotationSnapshotPrefix + "v1": strings.Repeat("s", 400)}
			one.Ports = []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To[int32](80)}}
			return endpoints(one, 100, func(_ int, endpoint *discoveryv1.Endpoint) {
				endpoint.Conditions = discoveryv1.EndpointConditions{
					Ready: ptr.To(true), Serving: ptr.To(true),
					Terminating: ptr.To(false),
				}
				endpoint.Zone, endpoint.NodeName = ptr.To("eu-central-1a"), ptr.To("node-1")
				endpoint.TargetRef = nil
			})
		},
		"many addresses": func(i int) *discoveryv1.EndpointSlice {
			return endpoints(base(i), 20, func(_ int, endpoint *discoveryv1.Endpoint) {
				for a := range 59 {
					endpoint.Addresses = append(endpoint.Addresses, fmt.Sprintf("10.9.9.%d", a))
				}
			})
		},
		"endpoints of nothing": func(i int) *discoveryv1.EndpointSlice {
			one := base(i)
			one.Endpoints = make([]discoveryv1.Endpoint, 1000)
			return one
		},
		"small slices": base,
		"host names and zones": func(i int) *discoveryv1.EndpointSlice {
			return endpoints(base(i), 200, func(e int, endpoint *discoveryv1.Endpoint) {
				endpoint.Hostname, endpoint.Zone = ptr.To(fmt.Sprint("h", e)), ptr.To(fmt.Sprint("z", e))
				endpoint.DeprecatedTopology = map[string]string{"a": "b"}
			})
		},
		"annotations": func(i int) *discoveryv1.EndpointSlice {
			one := base(i)
			one.Annotations = map[string]string{}
			for a := range 1000 {
				one.Annotations[fmt.Sprint(export.AnnotationSnapshotPrefix, a)] = "v"
			}
			return one
		},
	} {
		t.Run(name, func(t *testing.T) {
			of := newMemory(limit)
			store := newSliceStore(func(types.NamespacedName) {}, func(bool) {})
			store.account = of.open("west", store.imported, store.relist)
			of.setMembers([]string{"west", "north"})
			part := of.budget.Room("west")
			before := heap()
			list, err := listSelection(t.Context(),
				&endless{make: make1, most: 3 * part / 2 / export.WeightOf(export.Strip(make1(0))).Bytes},
				metav1.ListOptions{Limit: pageSize}, store)
			if err != nil {
				t.Fatal(err)
			}
			if _, full := store.get()[export.LimitMemory]; !full && store.get()[export.LimitEndpoints] == "" {
				t.Error("no limit is met")
			}
			objects := make([]any, len(list.Items))
			for i := range list.Items {
				objects[i] = list.Items[i]
			}
			if err := store.Replace(objects, "1"); err != nil {
				t.Fatal(err)
			}
			took := heap() - before
			t.Logf("%d slices, %d endpoints: %.2f MiB are counted, %.2f are held", store.count(), store.endpoints,
				float64(store.bytes)/(1<<20), float64(took)/(1<<20))
			if took > part || store.bytes > part || of.budget.Held("west") != store.bytes {
				t.Errorf("%d bytes are held and %d counted, with room for %d", took, store.bytes, part)
			}
			copies := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
				"a": func(any) ([]string, error) { return []string{"a"}, nil },
			})
			for _, object := range store.indexer.List() {
				if one, ok := object.(*packed.Slice); ok {
					copied := one.Open()
					copied.OwnerReferences = []metav1.OwnerReference{{
						APIVersion: "v1", Kind: "ServiceImport",
						Name: "x", Controller: ptr.To(true),
					}}
					if err := copies.Add(packed.New(copied)); err != nil {
						t.Fatal(err)
					}
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

// TestMembersShareTheMemory: a member at the limit takes nothing from another
// one, keeps what it has, and gets what others give back.
func TestMembersShareTheMemory(t *testing.T) {
	one := export.WeightOf(sized("a", 1)).Bytes
	of := newMemory(16 * one)
	of.setMembers([]string{"hostile", "honest"})
	stores := map[string]*sliceStore{}
	for _, cluster := range []string{"hostile", "honest"} {
		store := newSliceStore(func(types.NamespacedName) {}, func(bool) {})
		store.account = of.open(cluster, store.imported, store.relist)
		stores[cluster] = store
	}
	put := func(cluster string, i int) bool {
		if err := stores[cluster].Update(sized(string(rune('a'+i)), 1)); err != nil {
			t.Fatal(err)
		}
		return len(stores[cluster].of(types.NamespacedName{Namespace: "demo", Name: string(rune('a' + i))})) > 0
	}
	for i := range 9 {
		if !put("hostile", i) {
			t.Fatalf("slice %d was refused", i)
		}
	}
	if put("hostile", 9) || stores["hostile"].get()[export.LimitMemory] != "demo/j" {
		t.Errorf("the excess is %v", stores["hostile"].get())
	}
	if !put("hostile", 3) {
		t.Error("a change that does not grow was refused")
	}
	if !put("honest", 0) {
		t.Error("another member has no room")
	}
	if put("honest", 1) {
		t.Error("another member took what is guaranteed to those that join later")
	}
	// A third member leaves, and what it had is free.
	of.setMembers([]string{"hostile", "honest", "third"})
	third := of.open("third", func() map[types.NamespacedName]export.Weight { return nil }, make(chan struct{}, 1))
	third.settle(3 * one)
	before := of.budget.Room("honest")
	of.setMembers([]string{"hostile", "honest"})
	if third.settle(one); of.budget.Held("third") != 0 || before > of.budget.Room("honest") {
		t.Error("a member that left still holds something")
	}
	drain := func(store *sliceStore) bool {
		select {
		case <-store.relist:
			return true
		default:
			return false
		}
	}
	drain(stores["honest"])
	drain(stores["hostile"])
	if put("honest", 1) {
		t.Error("honest has room")
	}
	if err := stores["hostile"].Delete(sized("a", 1)); err != nil {
		t.Fatal(err)
	}
	if !drain(stores["honest"]) {
		t.Error("a member is not told that another one made room")
	}
	if !drain(stores["hostile"]) {
		t.Error("a member that made room is not listed anew")
	}
}

// TestCopiesHoldTheirPlace: before a member is listed after a restart, what is imported of it is held, so that no other
// member takes its place; a list that fails gives back what it claimed.
func TestCopiesHoldTheirPlace(t *testing.T) {
	of := newMemory(16_000)
	of.setMembers([]string{"west", "north"})
	west := of.open("west", func() map[types.NamespacedName]export.Weight {
		return map[types.NamespacedName]export.Weight{{Name: "a"}: {Bytes: 4000}, {Name: "b"}: {Bytes: 5000}}
	}, make(chan struct{}, 1))
	north := of.open("north", func() map[types.NamespacedName]export.Weight { return nil }, make(chan struct{}, 1))
	if north.claim(1001) || !north.claim(1000) {
		t.Error("north takes the place of what is imported of west")
	}
	north.abandon()
	if of.budget.Held("north") != 0 {
		t.Error("what a failed list claimed stays claimed")
	}
	if !west.claim(9000) || west.claim(9001) {
		t.Error("west has not the room that it had")
	}
	if west.claim(50); north.claim(1001) {
		t.Error("north takes the place of what is held of west while west is listed")
	}
	west.settle(100)
	if !north.claim(9000) {
		t.Error("what west gave back is not free")
	}
	north.settle(9000)
	of.open("west", func() map[types.NamespacedName]export.Weight { return nil }, make(chan struct{}, 1))
	if west.settle(1000); of.budget.Held("west") != 100 {
		t.Error("an account counts whose place another one took")
	}
}

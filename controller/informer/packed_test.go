// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// sample is a slice of a random service among a few.
func sample(random *rand.Rand) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("n", random.IntN(2)), Name: fmt.Sprint("s", random.IntN(100)),
			ResourceVersion: fmt.Sprint(random.IntN(1000)),
			Labels:          map[string]string{"service": fmt.Sprint(random.IntN(4)), "all": ""},
			Annotations:     map[string]string{"a": "b"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ServiceImport", Name: "x", Controller: ptr.To(true)}},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To[int32](80)}},
	}
	for i := range random.IntN(5) {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{fmt.Sprint("10.0.0.", i)}, Hostname: ptr.To("db"), Zone: ptr.To("a"),
			Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true), Serving: ptr.To(false)},
		})
	}
	return slice
}

func indexers() cache.Indexers {
	by := func(label string) cache.IndexFunc {
		return func(object any) ([]string, error) {
			slice, ok := object.(*discoveryv1.EndpointSlice)
			if !ok || slice.Labels[label] == "3" {
				return nil, nil
			}
			return []string{slice.Namespace + "/" + slice.Labels[label]}, nil
		}
	}
	return cache.Indexers{"service": by("service"), "all": by("all")}
}

// TestPackedIsTheIndexerOfClientGo: after the same random changes it has the same objects, keys and index
// values.
func TestPackedIsTheIndexerOfClientGo(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		got, want := cache.Indexer(NewPacked(indexers())), cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers())
		for range 300 {
			one := sample(random)
			for _, each := range []cache.Indexer{got, want} {
				var err error
				switch kind := one.ResourceVersion[0]; {
				case kind < '3':
					err = each.Delete(one)
				case kind == '9' && len(one.Endpoints) == 4:
					err = each.Replace([]any{one}, "7")
				default:
					err = each.Update(one)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		compare(t, got, want)
		if err := got.Replace(got.List(), "5"); err != nil {
			t.Fatal(err)
		}
		compare(t, got, want)
	}
}

func compare(t *testing.T, got, want cache.Indexer) {
	t.Helper()
	same := func(what string, got, want []any) {
		if !equality.Semantic.DeepEqual(sorted(got), sorted(want)) {
			t.Fatalf("%s: got %v, want %v", what, got, want)
		}
	}
	same("objects", got.List(), want.List())
	if slices.Compare(ordered(got.ListKeys()), ordered(want.ListKeys())) != 0 {
		t.Fatalf("keys %q, want %q", got.ListKeys(), want.ListKeys())
	}
	for _, key := range want.ListKeys() {
		one, known, err := got.GetByKey(key)
		other, _, _ := want.GetByKey(key)
		if err != nil || !known || !equality.Semantic.DeepEqual(one, other) {
			t.Fatalf("%s is %v, want %v", key, one, other)
		}
	}
	for name := range indexers() {
		values := ordered(want.ListIndexFuncValues(name))
		if !slices.Equal(ordered(got.ListIndexFuncValues(name)), values) {
			t.Fatalf("index %s has %q, want %q", name, got.ListIndexFuncValues(name), values)
		}
		for _, value := range append(values, "none") {
			some, err := got.ByIndex(name, value)
			others, _ := want.ByIndex(name, value)
			if err != nil {
				t.Fatal(err)
			}
			same(name+" "+value, some, others)
			keys, err := got.IndexKeys(name, value)
			wanted, _ := want.IndexKeys(name, value)
			if err != nil || !slices.Equal(ordered(keys), ordered(wanted)) {
				t.Fatalf("index %s has the keys %q, want %q", name, keys, wanted)
			}
			if len(others) > 0 {
				alike, err := got.Index(name, others[0])
				if err != nil {
					t.Fatal(err)
				}
				same(name+" of an object", alike, others)
			}
		}
	}
}

func ordered(texts []string) []string {
	slices.Sort(texts)
	return texts
}

func sorted(objects []any) []any {
	return slices.SortedFunc(slices.Values(objects), func(a, b any) int {
		one, _ := cache.MetaNamespaceKeyFunc(a)
		other, _ := cache.MetaNamespaceKeyFunc(b)
		return slices.Compare([]string{one}, []string{other})
	})
}

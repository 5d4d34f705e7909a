// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

type slicesClient struct {
	Client[*discoveryv1.EndpointSliceList]
}

func packedInformer(transform cache.TransformFunc) Of[*discoveryv1.EndpointSlice] {
	return New[*discoveryv1.EndpointSlice](&FreshnessGate{}, slicesClient{}, Options{
		Resource: "EndpointSlices", Example: &discoveryv1.EndpointSlice{}, Transform: transform,
	})
}

// listed returns a list of count slices with 100 endpoints, as a reflector has it.
func listed(count int, version string) (all []any) {
	for i := range count {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: fmt.Sprint("slice-", i), UID: "u", ResourceVersion: version,
		}}
		for e := range 100 {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{fmt.Sprintf("10.%d.%d.%d", i/250, i%250, e)}, NodeName: ptr.To(fmt.Sprint("node-", e)),
				Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
			})
		}
		all = append(all, slice)
	}
	return all
}

// TestARelistTells: the handler is called for slices that were changed, added or deleted, for packed slices with the metadata
// of both states. A restored etcd may reuse the resourceVersion of another state of an object.
func TestARelistTells(t *testing.T) {
	for name, transform := range map[string]cache.TransformFunc{"packed": export.PackSlice, "as they are": nil} {
		i := packedInformer(transform)
		var told []string
		text := func(object metav1.Object) string {
			if object == nil {
				return ""
			}
			return object.GetName() + "@" + object.GetResourceVersion()
		}
		i.Handle(func(before, after metav1.Object) { told = append(told, text(before)+" "+text(after)) })
		other := listed(1, "1")
		other[0].(*discoveryv1.EndpointSlice).Endpoints = nil
		for _, step := range []struct {
			list      []any
			told      []string
			endpoints int // in the cache
		}{
			{listed(2, "1"), []string{" slice-0@1", " slice-1@1"}, 200},
			{listed(2, "1"), nil, 200},
			{append(listed(1, "1"), listed(3, "2")[1:]...), []string{" slice-2@2", "slice-1@1 slice-1@2"}, 300},
			{listed(1, "1"), []string{"slice-1@2 ", "slice-2@2 "}, 100},
			{other, []string{"slice-0@1 slice-0@1"}, 0},
		} {
			told = nil
			if err := store(i).Replace(step.list, "9"); err != nil {
				t.Fatal(err)
			}
			endpoints := 0
			for _, object := range i.Indexer().List() {
				if slice, packed := object.(*export.Packed); packed {
					object = slice.Open()
				}
				endpoints += len(object.(*discoveryv1.EndpointSlice).Endpoints)
			}
			if slices.Sort(told); !slices.Equal(told, step.told) || endpoints != step.endpoints {
				t.Errorf("%s: told %q of %d endpoints, want %q of %d", name, told, endpoints, step.told, step.endpoints)
			}
		}
	}
}

// TestTheCacheComesFirst: the cache shows a change before handlers are called, so that a reconcile after the event reads the
// new state. Handlers that the first list calls see that it is known.
func TestTheCacheComesFirst(t *testing.T) {
	i, told := packedInformer(nil), ""
	i.Handle(func(_, after metav1.Object) {
		cached, want := "none", "none"
		if slice := i.Get(types.NamespacedName{Namespace: "demo", Name: "slice-0"}); slice != nil {
			cached = slice.ResourceVersion
		}
		if after != nil {
			want = after.GetResourceVersion()
		}
		if told += want + " "; cached != want || want == "3" && !i.HasSynced() {
			t.Errorf("the cache has %s, want %s; all objects were listed: %t", cached, want, i.HasSynced())
		}
	})
	s := store(i)
	if err := errors.Join(s.Add(listed(1, "1")[0]), s.Update(listed(1, "2")[0]), s.Delete(listed(1, "2")[0]),
		s.Replace(listed(1, "3"), ""), s.Replace(nil, "")); err != nil || told != "1 2 none 3 none " {
		t.Errorf("told of %s, %v", told, err)
	}
}

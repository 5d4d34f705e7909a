// SPDX-License-Identifier: Apache-2.0

package member

import (
	"sync/atomic"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

const byService = "service"

// sliceStore holds the EndpointSlices that one member publishes, by service. It is safe for one writer and any number of
// readers.
type sliceStore struct {
	// indexer has each as an export.Packed.
	indexer cache.Indexer
	// changed is called for each service that changed, after the change is visible: Members.slicesChanged.
	changed func(types.NamespacedName)
	// first is called after the first complete list, which makes the store synced.
	first func()
	// listing is called with a complete list, which show makes visible, if it is to be: see Tracker.Listed.
	listing func(uid string, services []types.NamespacedName, show func())
	synced  atomic.Bool

	// account decides what is admitted.
	account *limits.Account
	// imported returns the services that are imported from the member, with the weight of the copies of their slices.
	imported func() map[types.NamespacedName]limits.Weight
	// turns bounds how many lists are read at once.
	turns chan struct{}
}

// newSliceStore returns an empty store, whose other fields are not set.
func newSliceStore() *sliceStore {
	return &sliceStore{indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		byService: func(obj any) ([]string, error) {
			return []string{export.ServiceOf(obj.(*export.Packed).OpenMetadata()).String()}, nil
		},
	})}
}

// Synced reports whether the member's slices were listed since it joined or its credential changed. It never turns
// false again: a silent member stays as last seen.
func (s *sliceStore) Synced() bool { return s.synced.Load() }

// Slices returns the slices that the member publishes for a service, in no order, as new objects. They are complete once
// Synced.
func (s *sliceStore) Slices(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	return export.OpenAll(s.packed(service))
}

// Encoded returns how large the Slices of a service are in encoded form, 0 if there are none. It decodes none.
func (s *sliceStore) Encoded(service types.NamespacedName) int {
	return export.EncodedSize(s.packed(service))
}

// Withheld reports whether the limits exclude all slices of an imported service, so that their copies count. Call it
// before and after Slices to be sure.
func (s *sliceStore) Withheld(service types.NamespacedName) bool {
	return s.account.IsWithheld(service)
}

// packed returns the slices of a service as they are stored.
func (s *sliceStore) packed(service types.NamespacedName) []*export.Packed {
	return informer.ByIndex[*export.Packed](s.indexer, byService, service.String())
}

// has reports whether there is a slice of a service.
func (s *sliceStore) has(service types.NamespacedName) bool { return len(s.packed(service)) > 0 }

// slice returns a slice, nil if there is none. The object is new.
func (s *sliceStore) slice(namespace, name string) *discoveryv1.EndpointSlice {
	if slice := informer.Get[*export.Packed](s.indexer, namespace+"/"+name); slice != nil {
		return slice.Open()
	}
	return nil
}

// Services returns every service with a published slice.
func (s *sliceStore) Services() (services []types.NamespacedName) {
	for _, value := range s.indexer.ListIndexFuncValues(byService) {
		namespace, name, err := cache.SplitMetaNamespaceKey(value)
		if err == nil && name != "" {
			services = append(services, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return services
}

// Account counts what the member contributes, and has what of it is left out.
func (s *sliceStore) Account() *limits.Account { return s.account }

// Published returns the number of slices that the member publishes.
func (s *sliceStore) Published() int { return len(s.indexer.ListKeys()) }

// put stores a slice, unless the limits refuse it: then the old one stays.
func (s *sliceStore) put(slice *discoveryv1.EndpointSlice) {
	slice = export.Strip(slice)
	packed := export.Pack(slice)
	old := s.slice(slice.Namespace, slice.Name)
	service := export.ServiceOf(slice)
	switch {
	case service.Name == "":
		s.remove(slice) // it belongs to no service anymore
		return
	case old != nil && export.Pack(old).Equal(packed):
		return
	case old != nil && export.ServiceOf(old) != service:
		s.remove(old)
		old = nil
	}
	if s.account.Admit(service, old, slice) {
		_ = s.indexer.Update(packed) // only an object without a key is an error
		s.changed(service)
	}
}

func (s *sliceStore) remove(slice *discoveryv1.EndpointSlice) {
	old := s.slice(slice.Namespace, slice.Name)
	if old == nil {
		s.account.Remove(export.ServiceOf(slice), nil)
		return
	}
	_ = s.indexer.Delete(slice)
	s.account.Remove(export.ServiceOf(old), old)
	s.changed(export.ServiceOf(old))
}

// replace takes over a complete list of the cluster with a UID. It calls changed only for services that did.
func (s *sliceStore) replace(list *limits.List, uid string) error {
	objects := list.Slices()
	changes, err := informer.Changes(s.indexer, objects)
	if err != nil {
		return err
	}
	changed := map[types.NamespacedName]struct{}{}
	for _, change := range changes {
		for _, object := range []any{change.Before, change.After} {
			if slice, ok := object.(*export.Packed); ok {
				changed[export.ServiceOf(slice.OpenMetadata())] = struct{}{}
			}
		}
	}
	first := false
	s.listing(uid, list.Services(), func() {
		for service := range s.account.Commit(list, func() { err = s.indexer.Replace(objects, "") }) {
			changed[service] = struct{}{} // it may be gone
		}
		first = !s.synced.Swap(true)
	})
	for service := range changed {
		s.changed(service)
	}
	if first {
		s.first()
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package member

import (
	"maps"
	"slices"
	"sync/atomic"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

const byService = "service"

// sliceStore holds the EndpointSlices that one member publishes, by service. A reflector fills it: Add, Update and
// Delete panic on anything but an EndpointSlice, Replace on anything but an export.Packed. It is safe for one writer and
// any number of readers.
type sliceStore struct {
	// indexer has each as an export.Packed.
	indexer cache.Indexer
	// changed is called for each service that changed, after the change is visible: Members.slicesChanged.
	changed func(types.NamespacedName)
	// listed is called after the first complete list, which makes the store synced.
	listed func()
	// listing is called with the services of a complete list, which show makes visible, if it is to be: see Tracker.Listed.
	listing func(services []types.NamespacedName, show func())
	synced  atomic.Bool

	// account decides what is admitted.
	account *limits.Account
	// imported returns the services that are imported from the member, with the weight of the copies of their slices.
	imported func() map[types.NamespacedName]limits.Weight
	// turns bounds how many lists are read at once.
	turns chan struct{}
}

var _ cache.ReflectorStore = (*sliceStore)(nil)

// newSliceStore returns an empty store, whose other fields are not set.
func newSliceStore() *sliceStore {
	return &sliceStore{indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		byService: func(obj any) ([]string, error) {
			return []string{ServiceOf(obj.(*export.Packed).OpenMetadata()).String()}, nil
		},
	})}
}

// ServiceOf returns the service that a label of a published slice names. Its name is empty without such a label.
func ServiceOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.Namespace, Name: export.ServiceNameOf(slice)}
}

// of returns the slices of a service in no order. The objects are new.
func (s *sliceStore) of(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	return export.OpenAll(s.packed(service))
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

// services returns every service that has a slice.
func (s *sliceStore) services() (services []types.NamespacedName) {
	for _, value := range s.indexer.ListIndexFuncValues(byService) {
		namespace, name, err := cache.SplitMetaNamespaceKey(value)
		if err == nil && name != "" {
			services = append(services, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return services
}

// count returns the number of slices.
func (s *sliceStore) count() int { return len(s.indexer.ListKeys()) }

func (s *sliceStore) Add(obj any) error    { return s.put(obj) }
func (s *sliceStore) Update(obj any) error { return s.put(obj) }

// put stores a slice, unless the limits refuse it: then the old one stays.
func (s *sliceStore) put(obj any) error {
	slice := export.Strip(obj.(*discoveryv1.EndpointSlice))
	packed := export.Pack(slice)
	old := s.slice(slice.Namespace, slice.Name)
	service := ServiceOf(slice)
	if service.Name == "" {
		return s.Delete(slice) // it belongs to no service anymore
	}
	if old != nil && export.Pack(old).Equal(packed) {
		return nil
	}
	if old != nil && ServiceOf(old) != service {
		if err := s.Delete(old); err != nil {
			return err
		}
		old = nil
	}
	if !s.account.Admit(service, old, slice) {
		return nil
	}
	if err := s.indexer.Update(packed); err != nil {
		return err
	}
	s.changed(service)
	return nil
}

func (s *sliceStore) Delete(obj any) error {
	slice := obj.(*discoveryv1.EndpointSlice)
	old := s.slice(slice.Namespace, slice.Name)
	if old == nil {
		s.account.Remove(ServiceOf(slice), nil)
		return nil
	}
	if err := s.indexer.Delete(slice); err != nil {
		return err
	}
	s.account.Remove(ServiceOf(old), old)
	s.changed(ServiceOf(old))
	return nil
}

// Replace stores a complete list of packed slices, as of listSelection. It calls changed only for services that did.
func (s *sliceStore) Replace(objects []any, resourceVersion string) error {
	listed := map[types.NamespacedName]struct{}{}
	for service := range s.account.Withheld() {
		listed[service] = struct{}{} // it is exported nevertheless
	}
	for _, object := range objects {
		listed[ServiceOf(object.(*export.Packed).OpenMetadata())] = struct{}{}
	}
	changes, err := informer.Changes(s.indexer, objects)
	if err != nil {
		return err
	}
	changed := map[types.NamespacedName]struct{}{}
	for _, change := range changes {
		for _, object := range []any{change.Before, change.After} {
			if slice, ok := object.(*export.Packed); ok {
				changed[ServiceOf(slice.OpenMetadata())] = struct{}{}
			}
		}
	}
	first := false
	s.listing(slices.Collect(maps.Keys(listed)), func() {
		if err = s.indexer.Replace(objects, resourceVersion); err != nil {
			return
		}
		for service := range s.account.Commit() {
			changed[service] = struct{}{} // it may be gone
		}
		first = !s.synced.Swap(true)
	})
	for service := range changed {
		s.changed(service)
	}
	if first {
		s.listed()
	}
	return err
}

// Resync does nothing.
func (s *sliceStore) Resync() error { return nil }

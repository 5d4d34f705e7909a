// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

const byService = "service"

// sliceStore holds the EndpointSlices that one member publishes, by service. It is
// what a reflector fills; every change of a service is told to changed, after
// it can be read. It is safe for one writer and any number of readers.
type sliceStore struct {
	indexer cache.Indexer
	changed func(types.NamespacedName)
	// listed is told after each complete list; the first one makes the store
	// synced.
	listed func(first bool)
	// listing is told of the services of a complete list before it can be
	// read; nil where nobody wants to know.
	listing func([]types.NamespacedName)
	synced  atomic.Bool

	limits export.Limits
	// imported returns the services that are imported of the member already, with
	// what the copies of their slices weigh.
	imported func() map[types.NamespacedName]export.Weight
	// turns bounds how many lists are read at once; nil for no bound.
	turns chan struct{}
	*bounds
}

var _ cache.ReflectorStore = (*sliceStore)(nil)

func newSliceStore(changed func(types.NamespacedName), listed func(first bool)) *sliceStore {
	return &sliceStore{
		indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
			byService: func(obj any) ([]string, error) {
				slice, ok := obj.(*discoveryv1.EndpointSlice)
				if !ok {
					return nil, fmt.Errorf("unexpected object %T", obj)
				}
				return []string{ServiceOf(slice).String()}, nil
			},
		}),
		changed:  changed,
		listed:   listed,
		limits:   export.DefaultLimits,
		imported: func() map[types.NamespacedName]export.Weight { return nil },
		bounds:   newBounds(),
	}
}

// ServiceOf returns the service that a published slice belongs to, which its
// label names. The name is empty where it has no such label.
func ServiceOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[v1beta1.LabelServiceName]}
}

// of returns the slices of a service in no order. They are shared and must not
// be changed.
func (s *sliceStore) of(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	return informer.ByIndex[*discoveryv1.EndpointSlice](s.indexer, byService, service.String())
}

// services returns every service of which a slice is held.
func (s *sliceStore) services() []types.NamespacedName {
	values := s.indexer.ListIndexFuncValues(byService)
	result := make([]types.NamespacedName, 0, len(values))
	for _, value := range values {
		namespace, name, err := cache.SplitMetaNamespaceKey(value)
		if err == nil && name != "" {
			result = append(result, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return result
}

// count is how many slices are held.
func (s *sliceStore) count() int { return len(s.indexer.ListKeys()) }

func (s *sliceStore) Add(obj any) error    { return s.put(obj) }
func (s *sliceStore) Update(obj any) error { return s.put(obj) }

// put takes a slice, unless it exceeds a limit: then what was known of it
// stays.
func (s *sliceStore) put(obj any) error {
	slice, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return fmt.Errorf("unexpected object %T in a watch of EndpointSlices", obj)
	}
	slice, _ = s.limits.Fitting(strip(slice))
	before, _, err := s.indexer.Get(slice)
	if err != nil {
		return err
	}
	old, _ := before.(*discoveryv1.EndpointSlice)
	service := ServiceOf(slice)
	if service.Name == "" {
		return s.Delete(slice) // nobody could find it
	}
	moved := old != nil && ServiceOf(old) != service
	if !s.admit(s.limits, old, slice) {
		if moved {
			return s.Delete(old)
		}
		return nil
	}
	if err := s.indexer.Update(slice); err != nil {
		return err
	}
	s.replaced(old, slice)
	s.tell(service)
	if moved {
		s.tell(ServiceOf(old))
	}
	return nil
}

func (s *sliceStore) Delete(obj any) error {
	before, exists, err := s.indexer.Get(obj)
	if slice, ok := obj.(*discoveryv1.EndpointSlice); ok && !exists && s.isWithheld(ServiceOf(slice)) {
		s.makeRoom()
	}
	if err != nil || !exists {
		return err
	}
	if err := s.indexer.Delete(obj); err != nil {
		return err
	}
	if old, ok := before.(*discoveryv1.EndpointSlice); ok {
		s.replaced(old, nil)
		s.tell(ServiceOf(old))
	}
	return nil
}

// Replace takes a complete list, as of listSelection. Services of which nothing
// changed are not told.
func (s *sliceStore) Replace(objects []any, resourceVersion string) error {
	before := map[string]*discoveryv1.EndpointSlice{}
	for _, slice := range informer.List[*discoveryv1.EndpointSlice](s.indexer) {
		before[slice.Namespace+"/"+slice.Name] = slice
	}
	changed := map[types.NamespacedName]struct{}{}
	listed := map[types.NamespacedName]struct{}{}
	stripped := make([]any, 0, len(objects))
	for _, object := range objects {
		slice, ok := object.(*discoveryv1.EndpointSlice)
		if !ok {
			return fmt.Errorf("unexpected object %T in a list of EndpointSlices", object)
		}
		stripped = append(stripped, strip(slice))
		listed[ServiceOf(slice)] = struct{}{}
		key := slice.Namespace + "/" + slice.Name
		old := before[key]
		delete(before, key)
		// Equal resourceVersions do not prove equal content: an etcd that was
		// restored from a backup uses resourceVersions again.
		if old != nil && old.ResourceVersion == slice.ResourceVersion && equality.Semantic.DeepEqual(old, slice) {
			continue
		}
		changed[ServiceOf(slice)] = struct{}{}
		if old != nil {
			changed[ServiceOf(old)] = struct{}{}
		}
	}
	for _, gone := range before {
		changed[ServiceOf(gone)] = struct{}{}
	}
	if s.listing != nil {
		// What a limit keeps out is exported all the same.
		s.listing(slices.AppendSeq(slices.Collect(maps.Keys(listed)), maps.Keys(s.next)))
	}
	for service := range *s.withheld.Load() {
		changed[service] = struct{}{} // it may be gone
	}
	s.expect()
	if err := s.indexer.Replace(stripped, resourceVersion); err != nil {
		return err
	}
	s.recount(stripped)
	first := !s.synced.Swap(true)
	for service := range changed {
		s.tell(service)
	}
	s.listed(first)
	return nil
}

// Resync does nothing: the reconciler is told of changes, and of nothing else.
func (s *sliceStore) Resync() error { return nil }

func (s *sliceStore) tell(service types.NamespacedName) {
	if service.Name != "" {
		s.changed(service)
	}
}

// strip drops what nobody here reads of a slice that was just decoded, and so
// belongs to the caller. Of the addresses of an endpoint it keeps the first:
// Kubernetes writes one, and kube-proxy uses no other.
func strip(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	slice.ManagedFields = nil
	slice.OwnerReferences = nil
	slice.Finalizers = nil
	slice.GenerateName = ""
	if cap(slice.Endpoints) > len(slice.Endpoints) {
		slice.Endpoints = append(make([]discoveryv1.Endpoint, 0, len(slice.Endpoints)), slice.Endpoints...)
	}
	var zone *string
	for i := range slice.Endpoints {
		endpoint := &slice.Endpoints[i]
		endpoint.NodeName = nil
		endpoint.TargetRef = nil
		endpoint.Hints = nil
		endpoint.DeprecatedTopology = nil
		if len(endpoint.Addresses) > 1 {
			endpoint.Addresses = []string{endpoint.Addresses[0]}
		}
		endpoint.Conditions = discoveryv1.EndpointConditions{
			Ready: shared(endpoint.Conditions.Ready), Serving: shared(endpoint.Conditions.Serving),
			Terminating: shared(endpoint.Conditions.Terminating),
		}
		if zone != nil && endpoint.Zone != nil && *zone == *endpoint.Zone {
			endpoint.Zone = zone
		}
		zone = endpoint.Zone
	}
	return slice
}

var yes, no = true, false

// shared returns a pointer to the same value, of which there is one for all.
func shared(value *bool) *bool {
	switch {
	case value == nil:
		return nil
	case *value:
		return &yes
	}
	return &no
}

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

// sliceStore holds the EndpointSlices that one member publishes, by service. A reflector fills it. It is safe for one
// writer and any number of readers.
type sliceStore struct {
	indexer cache.Indexer
	// changed is called for each service that changed, after the change is visible. updated is called instead if one
	// slice of it was updated; nil calls changed.
	changed func(types.NamespacedName)
	updated func(before, after *discoveryv1.EndpointSlice)
	// listed is called after each complete list; the first one makes the store synced.
	listed func(first bool)
	// listing is called with the services of a complete list before the list is visible. It is optional.
	listing func([]types.NamespacedName)
	synced  atomic.Bool

	limits export.Limits
	// imported returns the services that are imported from the member, with the weight of the copies of their slices.
	imported func() map[types.NamespacedName]export.Weight
	// turns bounds how many lists are read at once; nil for no bound.
	turns chan struct{}
	*quota
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
			cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		}),
		changed:  changed,
		listed:   listed,
		limits:   export.DefaultLimits,
		imported: func() map[types.NamespacedName]export.Weight { return nil },
		quota:    newQuota(),
	}
}

// ServiceOf returns the service that the label of a published slice names. Its name is empty without the label.
func ServiceOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[v1beta1.LabelServiceName]}
}

// of returns the slices of a service in no order. They are shared and must not be changed.
func (s *sliceStore) of(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	return informer.ByIndex[*discoveryv1.EndpointSlice](s.indexer, byService, service.String())
}

// slice returns a slice, nil if there is none. It is shared and must not be changed.
func (s *sliceStore) slice(namespace, name string) *discoveryv1.EndpointSlice {
	return informer.Get[*discoveryv1.EndpointSlice](s.indexer, namespace+"/"+name)
}

// services returns every service that has a slice.
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

// servicesIn returns the services of a namespace that have a slice. A service may occur often.
func (s *sliceStore) servicesIn(namespace string) (services []types.NamespacedName) {
	for _, slice := range informer.ByIndex[*discoveryv1.EndpointSlice](s.indexer, cache.NamespaceIndex, namespace) {
		if service := ServiceOf(slice); service.Name != "" {
			services = append(services, service)
		}
	}
	return services
}

// count returns the number of slices.
func (s *sliceStore) count() int { return int(s.number.Load()) }

func (s *sliceStore) Add(obj any) error    { return s.put(obj) }
func (s *sliceStore) Update(obj any) error { return s.put(obj) }

// put stores a slice, unless the quota refuses it: then the old one stays.
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
		return s.Delete(slice) // it belongs to no service anymore
	}
	if old != nil && same(old, slice) {
		return nil
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
	s.noteReplaced(old, slice)
	if old != nil && !moved && s.updated != nil {
		s.updated(old, slice)
		return nil
	}
	s.tell(service)
	if moved {
		s.tell(ServiceOf(old))
	}
	return nil
}

func (s *sliceStore) Delete(obj any) error {
	before, exists, err := s.indexer.Get(obj)
	if slice, ok := obj.(*discoveryv1.EndpointSlice); ok && !exists && s.isWithheld(ServiceOf(slice)) {
		s.requestRelist()
	}
	if err != nil || !exists {
		return err
	}
	if err := s.indexer.Delete(obj); err != nil {
		return err
	}
	if old, ok := before.(*discoveryv1.EndpointSlice); ok {
		s.noteReplaced(old, nil)
		s.tell(ServiceOf(old))
	}
	return nil
}

// Replace stores a complete list, as of listSelection. It calls changed only for services that did.
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
		if old != nil && same(old, slice) {
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
		// Withheld services are exported nevertheless.
		s.listing(slices.AppendSeq(slices.Collect(maps.Keys(listed)), maps.Keys(s.nextWithheld)))
	}
	for service := range *s.withheld.Load() {
		changed[service] = struct{}{} // it may be gone
	}
	s.beginList()
	if err := s.indexer.Replace(stripped, resourceVersion); err != nil {
		return err
	}
	s.endList(stripped)
	first := !s.synced.Swap(true)
	for service := range changed {
		s.tell(service)
	}
	s.listed(first)
	return nil
}

// same compares two states of a slice. Equal resourceVersions do not prove equal content, because an etcd that was
// restored from a backup uses them again.
func same(a, b *discoveryv1.EndpointSlice) bool {
	return a.ResourceVersion == b.ResourceVersion && equality.Semantic.DeepEqual(a, b)
}

// Resync does nothing.
func (s *sliceStore) Resync() error { return nil }

func (s *sliceStore) tell(service types.NamespacedName) {
	if service.Name != "" {
		s.changed(service)
	}
}

// strip drops the fields of a just decoded slice that the controller does not read. It keeps the first address of an
// endpoint: Kubernetes writes only one, and kube-proxy uses no other.
func strip(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	slice.ManagedFields = nil
	slice.OwnerReferences = nil
	slice.Finalizers = nil
	slice.GenerateName = ""
	for i := range slice.Endpoints {
		endpoint := &slice.Endpoints[i]
		endpoint.NodeName = nil
		endpoint.TargetRef = nil
		endpoint.Hints = nil
		endpoint.DeprecatedTopology = nil
		if len(endpoint.Addresses) > 1 {
			endpoint.Addresses = []string{endpoint.Addresses[0]}
		}
	}
	export.Compact(slice)
	return slice
}

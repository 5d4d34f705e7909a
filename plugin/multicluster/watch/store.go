// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// item is the compact form of an object. A reflector buffers items during the first list, so that the objects are freed
// immediately.
type item struct {
	*metav1.ObjectMeta // noMeta: a reflector calls only GetName and GetNamespace
	namespace, name    string
	// key is the key of the service to which an import or a slice belongs. A slice that Kubernetes mirrors from
	// Endpoints belongs to a Service, and has the key namespace/name. A single slash occurs in no key of an import.
	key   string
	cause time.Time // time of the change behind the slice, as the controller that wrote it recorded it; zero if unknown
	// content is what DNS needs: a *record.Import, *record.Endpoints or *record.Node, or the []netip.Addr of a Service.
	content any
	// undecodable says why an import is left out.
	undecodable error
}

var noMeta = &metav1.ObjectMeta{}

// GetName returns the object's name.
func (i *item) GetName() string { return i.name }

// GetNamespace returns the object's namespace.
func (i *item) GetNamespace() string { return i.namespace }

// equal reports whether two states of an object give the same answers. Most updates of a Node are heartbeats and equal.
// Either may be nil.
func (i *item) equal(other *item) bool {
	if i == nil || other == nil {
		return i == other
	}
	same := *other
	same.cause = i.cause // ignored: the cause of a change without effect on DNS
	return reflect.DeepEqual(*i, same)
}

// objectID identifies an object of a resource.
func objectID(namespace, name string) string { return namespace + "/" + name }

// item converts an object, unless it is an item already. The reflector has checked the type.
func (s *store) item(from any) *item {
	if i, ok := from.(*item); ok {
		return i
	}
	meta := from.(metav1.Object)
	i := &item{ObjectMeta: noMeta, namespace: meta.GetNamespace(), name: meta.GetName()}
	switch from := from.(type) {
	case *unstructured.Unstructured:
		imported, err := decodeImport(from)
		i.key, i.content, i.undecodable = imported.Key, imported, err
	case *corev1.Service:
		i.key, i.content = objectID(i.namespace, i.name), record.ServiceAddresses(from.Spec.ClusterIPs)
	case *discoveryv1.EndpointSlice:
		i.content = record.FromEndpointSlice(from, s.options.TopologyZones || s.options.Nodes)
		i.key = from.Labels[mcsv1beta1.LabelServiceName] + "." + i.namespace
		if s.resource == MirroredEndpointSlices {
			i.key = objectID(i.namespace, from.Labels[discoveryv1.LabelServiceName])
		}
		i.cause, _ = time.Parse(time.RFC3339Nano,
			cmp.Or(from.Annotations[annotationTriggerTime], from.Annotations[corev1.EndpointsLastChangeTriggerTime]))
	case *corev1.Node:
		i.content = record.FromNode(from)
	}
	return i
}

// decodeImport decodes the spec of an import, and the metadata that DNS needs, which are the same in all versions. The
// schema of a CRD accepts values that Go's types do not. Such an object must not fail the whole list or watch: it is
// left out, with the error as the reason.
func decodeImport(from *unstructured.Unstructured) (*record.Import, error) {
	imported := &mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{
		Name: from.GetName(), Namespace: from.GetNamespace(), Labels: from.GetLabels(), Annotations: from.GetAnnotations(),
	}}
	spec, _ := from.Object["spec"].(map[string]any)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &imported.Spec); err != nil {
		return record.FromUndecodable(imported), err
	}
	return record.FromServiceImport(imported), nil
}

// annotationTriggerTime replaces Kubernetes' annotation in clusterset-controller's slices: kube-proxy reads Kubernetes' one.
const annotationTriggerTime = "clusterset-dns.github.io/last-change-trigger-time"

// store is the part of a source that one reflector fills: a resource in one namespace, or in all if the namespace is empty.
type store struct {
	*Source
	resource  Resource
	namespace string
	optional  bool // a missing or forbidden resource delays nothing

	failed    rate.Sometimes // limits the log
	healthy   bool           // the API server accepted the last list or watch; guarded, like confirmed, by the source's lock
	confirmed time.Time      // time of the last list, event or bookmark; bookmarks arrive every minute or two
}

var (
	_ cache.TransformingStore      = (*store)(nil)
	_ cache.ResourceVersionUpdater = (*store)(nil)
)

// newStore adds a store to the source, which waits until each store was listed.
func (s *Source) newStore(resource Resource, namespace string, optional bool) *store {
	added := &store{Source: s, resource: resource, namespace: namespace, optional: optional}
	added.failed.Interval = time.Minute
	s.stores = append(s.stores, added)
	if resource != Nodes { // zones of clients only order answers, so nothing waits for them
		s.missing[added] = false
	}
	return added
}

// note records that a store was listed or, if refused is set, that the API server does not have the resource or forbids
// listing it. After the last list the publisher settles the source. The caller holds the lock.
func (s *store) note(refused bool) {
	if _, ok := s.missing[s]; !ok {
		return
	}
	if s.missing[s] = refused; !refused {
		delete(s.missing, s)
	}
	if s.listed() {
		s.signal()
	} else if !slices.Contains(slices.Collect(maps.Values(s.missing)), false) {
		s.settle()
	}
}

// asked records the result of starting a list or a watch. The source does not wait for an optional resource that is
// missing or forbidden. For a missing group, an API server answers "forbidden" to clients without rights on it.
func (s *store) asked(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if err != nil {
		s.report(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.healthy = err == nil
	if missing := apierrors.IsNotFound(err) || apierrors.IsForbidden(err); missing || apierrors.IsUnauthorized(err) {
		s.note(!s.optional || !missing)
	}
}

// Transformer lets the reflector buffer items instead of objects.
func (s *store) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.item(object), nil }
}

// Add stores an object.
func (s *store) Add(object any) error { return s.Update(object) }

// Update stores the new state of an object.
func (s *store) Update(object any) error {
	i := s.item(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(objectID(i.namespace, i.name), i)
	return nil
}

// Delete removes an object.
func (s *store) Delete(object any) error {
	i := s.item(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(s.resource, objectID(i.namespace, i.name), nil)
	return nil
}

// Replace stores a complete list and removes all other objects.
func (s *store) Replace(list []any, _ string) error {
	items := make(map[string]*item, len(list))
	for _, object := range list {
		i := s.item(object)
		items[objectID(i.namespace, i.name)] = i
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, i := range s.objects[s.resource] {
		if items[id] == nil && (s.namespace == "" || s.namespace == i.namespace) {
			s.set(s.resource, id, nil)
		}
	}
	for id, i := range items {
		s.put(id, i)
	}
	s.confirmed = s.now()
	s.note(false)
	return nil
}

// put stores an item. The caller holds the lock.
func (s *store) put(id string, i *item) {
	i.namespace, i.name, _ = strings.Cut(id, "/") // both share the memory of id
	if s.set(s.resource, id, i) && i.undecodable != nil {
		log.Warningf("Leaving out %s %s, which cannot be decoded: correct or delete the object: %v", s.resource, id, i.undecodable)
	}
}

// UpdateResourceVersion records that the watch is alive. A reflector calls it after each event and bookmark.
func (s *store) UpdateResourceVersion(string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = s.now()
}

// Resync does nothing: nothing else is derived from the store.
func (s *store) Resync() error { return nil }

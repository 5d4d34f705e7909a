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

// item is the compact form of an object. A reflector's buffer holds items during the first list, so that objects are
// freed at once.
type item struct {
	*metav1.ObjectMeta // noMeta: a reflector asks for name and namespace alone
	namespace, name    string
	// key is that of the service that an import or a slice belongs to. The slices that Kubernetes mirrors of Endpoints
	// belong to their Service, and it has the key namespace/name, with the one slash that no import's key has.
	key   string
	cause time.Time // of the change behind the slice, if known
	// content is what DNS needs: a *record.Import, *record.Endpoints or *record.Node, or the []netip.Addr of a Service.
	content any
	// undecodable is why an import is left out.
	undecodable error
}

var noMeta = &metav1.ObjectMeta{}

// GetName is the object's name.
func (i *item) GetName() string { return i.name }

// GetNamespace is the object's namespace.
func (i *item) GetNamespace() string { return i.namespace }

// equal reports whether two states of an object give the same answers: what DNS needs of it is the same, as in most changes
// of a node, which are signs of its life. Either may be nil.
func (i *item) equal(other *item) bool {
	if i == nil || other == nil {
		return i == other
	}
	same := *other
	same.cause = i.cause // it caused nothing that DNS shows
	return reflect.DeepEqual(*i, same)
}

// objectID identifies an object of a resource.
func objectID(namespace, name string) string { return namespace + "/" + name }

// item converts an object, unless it is an item already. A reflector checks the types of objects.
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
		i.key, i.content = objectID(i.namespace, i.name), record.ServiceAddresses(from)
	case *discoveryv1.EndpointSlice:
		i.content = record.FromEndpointSlice(from, s.options.TopologyZones || s.options.Nodes)
		i.key = from.Labels[mcsv1beta1.LabelServiceName] + "." + i.namespace
		if s.resource == MirroredEndpointSlices {
			i.key = objectID(i.namespace, from.Labels[discoveryv1.LabelServiceName])
		}
		i.cause = causeOf(from)
	case *corev1.Node:
		i.content = record.FromNode(from)
	}
	return i
}

// decodeImport reads the spec of an import, and what DNS needs of its metadata, in any of the versions: it is the same
// in all. The schema of a CRD accepts what Go's types do not. Such an object must not fail the list or the watch that it
// is in: the error says why it is left out.
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

// annotationTriggerTime is what clusterset-controller writes in place of Kubernetes' key, which kube-proxy reads too.
const annotationTriggerTime = "clusterset-dns.github.io/last-change-trigger-time"

// causeOf is when the change that caused the slice's present state happened: the controller that wrote the slice, or
// the one that copied it, says so. It is zero if none does.
func causeOf(slice *discoveryv1.EndpointSlice) time.Time {
	text := cmp.Or(slice.Annotations[annotationTriggerTime], slice.Annotations[corev1.EndpointsLastChangeTriggerTime])
	cause, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return cause
}

// store puts what one reflector gets into the source: a resource in one namespace, or in all if the namespace is empty.
type store struct {
	*Source
	resource  Resource
	namespace string
	optional  bool // nothing waits for it if it is missing or forbidden

	failed    rate.Sometimes // limits the log
	healthy   bool           // the API server accepted the last list or watch; the lock of the source guards this and the next
	confirmed time.Time      // of the last list, event or bookmark; bookmarks come every minute or two
}

var (
	_ cache.TransformingStore      = (*store)(nil)
	_ cache.ResourceVersionUpdater = (*store)(nil)
)

// newStore adds a store. Until everything was listed the source waits for it.
func (s *Source) newStore(resource Resource, namespace string, optional bool) *store {
	added := &store{Source: s, resource: resource, namespace: namespace, optional: optional}
	added.failed.Interval = time.Minute
	s.stores = append(s.stores, added)
	if resource != Nodes { // names do not wait for what only orders their answers
		s.missing[added] = false
	}
	return added
}

// note records that a store that was missing is listed, or refused: the API server has no such resource or forbids to
// list it. What is listed settles when it is published. The lock is held.
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

// asked notes how a list or a watch began. Nothing waits for an optional resource that is missing or forbidden. For a
// missing group an API server answers "forbidden" to clients without rights on it.
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

// Add puts an object in.
func (s *store) Add(object any) error { return s.Update(object) }

// Update puts an object in, in the place of its last state.
func (s *store) Update(object any) error {
	i := s.item(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(objectID(i.namespace, i.name), i)
	return nil
}

// Delete takes an object out.
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

// put puts an object in, unless the operator lists other namespaces. The lock is held.
func (s *store) put(id string, i *item) {
	if only := s.options.Namespaces; i.namespace != "" && len(only) > 0 && !slices.Contains(only, i.namespace) {
		return
	}
	i.namespace, i.name, _ = strings.Cut(id, "/") // one string in memory
	if s.set(s.resource, id, i) && i.undecodable != nil {
		log.Warningf("Leaving out %s %s, which cannot be decoded: correct or delete the object: %v", s.resource, id, i.undecodable)
	}
}

// UpdateResourceVersion records a sign of life of the watch. A reflector calls it after each event and bookmark.
func (s *store) UpdateResourceVersion(string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.confirmed = s.now()
}

// Resync does nothing: nothing is derived but what the source derives.
func (s *store) Resync() error { return nil }

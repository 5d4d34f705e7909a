// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/topology"
)

// item is the compact form of an object. A reflector's buffer holds items during the first list, so that objects are
// freed at once.
type item struct {
	*metav1.ObjectMeta // noMeta: a reflector asks for name and namespace alone
	namespace, name    string
	imported           *object.Import
	undecodable        error // why the object is left out
	endpoints          *object.Endpoints
	addrs              []netip.Addr // of a Service
	node               *topology.Node
	service            string    // the key of the endpoints' service, or that of a mirrored one's Service
	cause              time.Time // time of the change behind the slice, if known
}

var noMeta = &metav1.ObjectMeta{}

// GetName is the object's name.
func (i *item) GetName() string { return i.name }

// GetNamespace is the object's namespace.
func (i *item) GetNamespace() string { return i.namespace }

// object identifies the object.
func (i *item) object() string { return i.namespace + "/" + i.name }

// item converts an object, unless it is an item already.
func (s *store) item(from any) (*item, error) {
	if i, ok := from.(*item); ok {
		return i, nil
	}
	accessor, err := meta.Accessor(from)
	if err != nil {
		return nil, fmt.Errorf("not an object: %T: %w", from, err)
	}
	i := &item{ObjectMeta: noMeta, namespace: accessor.GetNamespace(), name: accessor.GetName()}
	switch from := from.(type) {
	case *importObject:
		if i.undecodable = from.undecodable; i.undecodable != nil {
			i.imported = object.FromUndecodable(&from.ServiceImport)
		} else {
			i.imported = object.FromServiceImport(&from.ServiceImport)
		}
	case *corev1.Service:
		i.addrs = object.ServiceAddresses(from)
	case *discoveryv1.EndpointSlice:
		i.endpoints = object.FromEndpointSlice(from, s.inputs.zones)
		i.service = from.Labels[mcsv1beta1.LabelServiceName] + "." + i.namespace
		if s.resource == MirroredEndpointSlices {
			i.service = mirroredKeyOf(from)
		}
		i.cause = causeOf(from)
	case *corev1.Namespace:
	case *corev1.Node:
		i.node = topology.FromNode(from)
	default:
		return nil, fmt.Errorf("not an object that is watched: %T", from)
	}
	return i, nil
}

// annotationTriggerTime is what clusterset-controller writes in place of Kubernetes' key, which kube-proxy reads too.
const annotationTriggerTime = "clusterset-dns.github.io/last-change-trigger-time"

// causeOf is when the change that caused the slice's present state happened: the controller that wrote the slice, or
// the one that copied it, says so. It is zero if none does.
func causeOf(slice *discoveryv1.EndpointSlice) time.Time {
	text := cmp.Or(slice.Annotations[annotationTriggerTime], slice.Annotations[corev1.EndpointsLastChangeTriggerTime])
	if text == "" {
		return time.Time{}
	}
	cause, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return cause
}

// store puts what a reflector gets into the inputs.
type store struct {
	scope
	inputs  *inputs
	held    map[string]struct{} // the objects in the inputs, by namespace/name; their lock guards it
	contact *contact
	listed  func()
	now     func() time.Time
}

// store makes the store of a scope. The source has one for each.
func (s *Source) store(of scope) *store {
	c := &contact{resource: of.resource}
	s.contacts = append(s.contacts, c)
	return &store{
		scope: of, inputs: s.inputs, held: make(map[string]struct{}), contact: c,
		listed: func() { s.listed(of) },
		now:    func() time.Time { return s.now() },
	}
}

var (
	_ cache.TransformingStore      = (*store)(nil)
	_ cache.ResourceVersionUpdater = (*store)(nil)
)

// Transformer lets the reflector buffer items instead of objects.
func (s *store) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return s.item(object) }
}

// Add puts an object in.
func (s *store) Add(object any) error { return s.Update(object) }

// Update puts an object in, in the place of its last state.
func (s *store) Update(object any) error {
	i, err := s.item(object)
	if err != nil {
		return err
	}
	s.inputs.mu.Lock()
	defer s.inputs.mu.Unlock()
	s.assign(i.namespace, i.name, i)
	return nil
}

// Delete takes an object out.
func (s *store) Delete(object any) error {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return fmt.Errorf("not an object: %T: %w", object, err)
	}
	s.inputs.mu.Lock()
	defer s.inputs.mu.Unlock()
	s.assign(accessor.GetNamespace(), accessor.GetName(), nil)
	return nil
}

// Replace stores a complete list and removes all other objects.
func (s *store) Replace(list []any, _ string) error {
	items := make(map[string]*item, len(list))
	for _, object := range list {
		i, err := s.item(object)
		if err != nil {
			return err
		}
		items[i.object()] = i
	}
	s.inputs.mu.Lock()
	for object := range s.held {
		if _, ok := items[object]; !ok {
			namespace, name, _ := strings.Cut(object, "/")
			s.assign(namespace, name, nil)
		}
	}
	for _, i := range items {
		s.assign(i.namespace, i.name, i)
	}
	s.inputs.mu.Unlock()
	s.UpdateResourceVersion("")
	s.listed()
	return nil
}

// UpdateResourceVersion records a sign of life of the watch. A reflector calls it after each event and bookmark.
func (s *store) UpdateResourceVersion(string) {
	s.contact.synced.Store(s.now().UnixNano())
}

// asked notes how a list or a watch began.
func (s *store) asked(err error) {
	s.contact.healthy.Store(err == nil)
}

// Resync does nothing: nothing is derived but what the inputs derive.
func (s *store) Resync() error { return nil }

// assign puts the state of an object into the inputs; nil removes it. Their lock is held.
func (s *store) assign(namespace, name string, i *item) {
	object, exists := namespace+"/"+name, i != nil
	switch {
	case !exists:
		i = new(item)
		delete(s.held, object)
	case namespace != "" && !s.inputs.serves(namespace):
		return
	default:
		s.held[object] = struct{}{}
	}
	switch s.resource {
	case ServiceImports, GKEServiceImports:
		if s.inputs.setImport(s.resource, object, namespace, i.imported) && i.undecodable != nil {
			s.inputs.observer.Undecodable(s.resource, object, i.undecodable)
		}
	case Services:
		s.inputs.setService(object, i.addrs)
	case EndpointSlices, MirroredEndpointSlices:
		s.inputs.setSlice(s.resource, object, i.service, namespace, i.endpoints, i.cause)
	case Namespaces:
		s.inputs.selectNamespace(name, exists)
	case Nodes:
		s.inputs.setNode(name, i.node)
	}
}

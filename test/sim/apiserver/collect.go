// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// foreground is the finalizer that keeps an owner until the dependents that block its deletion are gone.
const foreground = metav1.FinalizerDeleteDependents

// terminate begins the deletion of an object, and completes it if no finalizer remains. It returns the last state of
// the object.
func (s *Server) terminate(resource schema.GroupResource, old runtime.Object,
	options metav1.DeleteOptions,
) runtime.Object {
	object := old.DeepCopyObject()
	m := access(object)
	if options.PropagationPolicy != nil && *options.PropagationPolicy == metav1.DeletePropagationForeground &&
		!slices.Contains(m.GetFinalizers(), foreground) {
		m.SetFinalizers(append(m.GetFinalizers(), foreground))
	}
	namespace, isNamespace := object.(*corev1.Namespace)
	if len(m.GetFinalizers()) == 0 && !isNamespace {
		return s.remove(resource, object)
	}
	if m.GetDeletionTimestamp() == nil {
		deleted, immediately := now(), int64(0)
		m.SetDeletionTimestamp(&deleted)
		m.SetDeletionGracePeriodSeconds(&immediately)
		if isNamespace {
			namespace.Status.Phase = corev1.NamespaceTerminating
		}
		object = s.store.write(watch.Modified, resource, object)
	}
	if isNamespace {
		s.later(func() { s.emptyNamespace(m.GetName()) })
	} else if slices.Contains(m.GetFinalizers(), foreground) {
		s.later(func() { s.collect(m.GetUID()) })
	}
	return object
}

// remove deletes an object without finalizers, and has its dependents collected.
func (s *Server) remove(resource schema.GroupResource, object runtime.Object) runtime.Object {
	if resource == definitions.GroupResource() {
		s.dropCustom(object)
	}
	object = s.store.write(watch.Deleted, resource, object.DeepCopyObject())
	m := access(object)
	s.later(func() { s.collect(m.GetUID()) })
	if namespace := m.GetNamespace(); namespace != "" {
		s.later(func() {
			if n, ok := s.store.get(namespaces, namespace).(*corev1.Namespace); ok && n.DeletionTimestamp != nil {
				s.emptyNamespace(namespace)
			}
		})
	}
	return object
}

var namespaces = schema.GroupResource{Resource: "namespaces"}

// collect is the garbage collector: it deletes the dependents of an owner that is gone, each of which has a single
// owner here, and an owner that waits for its dependents. No other finalizer exists on them here.
func (s *Server) collect(owner types.UID) {
	var waiting runtime.Object
	var waitingResource schema.GroupResource
	for resource, objects := range s.store.objects {
		for _, each := range objects {
			m := access(each)
			if m.GetUID() == owner {
				if m.GetDeletionTimestamp() != nil && slices.Contains(m.GetFinalizers(), foreground) {
					waiting, waitingResource = each, resource
					continue
				}
				return // the owner exists
			}
		}
	}
	for resource, objects := range s.store.objects {
		for _, each := range objects {
			if !slices.ContainsFunc(access(each).GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner }) {
				continue
			}
			s.terminate(resource, each, metav1.DeleteOptions{})
		}
	}
	if waiting != nil {
		s.remove(waitingResource, waiting)
	}
}

// emptyNamespace is the namespace controller: it deletes the objects in a terminating namespace, and then the
// namespace.
func (s *Server) emptyNamespace(name string) {
	empty := true
	for resource, objects := range s.store.objects {
		for _, each := range objects {
			if m := access(each); m.GetNamespace() == name {
				if m.GetDeletionTimestamp() == nil {
					s.terminate(resource, each, metav1.DeleteOptions{})
				}
				empty = empty && s.store.get(resource, keyOf(each)) == nil
			}
		}
	}
	namespace, ok := s.store.get(namespaces, name).(*corev1.Namespace)
	if ok && empty && namespace.DeletionTimestamp != nil && len(namespace.Finalizers) == 0 {
		s.remove(namespaces, namespace)
	}
}

// dropCustom deletes the objects of a deleted CustomResourceDefinition, as its finalizer does, and ends their watches.
func (s *Server) dropCustom(definition runtime.Object) {
	resource := schema.ParseGroupResource(access(definition).GetName())
	for _, each := range s.store.objects[resource] {
		s.remove(resource, each)
	}
	s.store.end(resource)
}

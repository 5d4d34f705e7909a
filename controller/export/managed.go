// SPDX-License-Identifier: Apache-2.0

package export

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsManaged reports whether a ServiceImport, Service or EndpointSlice belongs to the controller, which changes and deletes
// no others.
func IsManaged(object metav1.Object) bool { return object.GetLabels()[managedBy(object)] == Manager }

// Mark gives a ServiceImport, Service or EndpointSlice the label of the controller.
func Mark(object metav1.Object) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[managedBy(object)] = Manager
	object.SetLabels(labels)
}

// IsDerivedFor reports whether a Service of the controller is derived from the service of that name. It is also true if
// DerivedFor finds no service, because another writer may have changed the labels.
func IsDerivedFor(derived *corev1.Service, service string) bool {
	of := DerivedFor(derived)
	return IsManaged(derived) && (of == "" || of == service)
}

// managedBy returns the key of the managed-by label of an object.
func managedBy(object metav1.Object) string {
	if _, slice := object.(*discoveryv1.EndpointSlice); slice {
		return LabelSliceManagedBy
	}
	return LabelManagedBy
}

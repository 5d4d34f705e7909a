// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// A Set is the name of a cluster set, the same in all its clusters. The default set has the empty name. A cluster that
// is in several sets runs a controller for each of them (docs/operate/operations.md#several-sets).
type Set string

const (
	// LabelSet is the label of a Namespace that names the set to which it belongs; without it, or empty, that is the
	// default set. It is also on the objects that the controller of a named set writes.
	LabelSet = Domain + "/clusterset"
	// NamedManager is the value of the managed-by labels on all objects of controllers of named sets. It differs from
	// Manager, so that a controller that does not know of sets leaves these objects alone.
	NamedManager = "named." + Manager
)

// ParseSet returns the set of that name: a DNS label, or empty for the default set.
func ParseSet(name string) (Set, error) {
	if problems := validation.IsDNS1123Label(name); name != "" && len(problems) > 0 {
		return "", fmt.Errorf("%q is no name of a cluster set: %s", name, problems[0])
	}
	return Set(name), nil
}

// String returns the set as text.
func (s Set) String() string {
	if s == "" {
		return "the default cluster set"
	}
	return "cluster set " + string(s)
}

// Manager returns the value of the managed-by labels on the objects of the controller of this set.
func (s Set) Manager() string {
	if s == "" {
		return Manager
	}
	return NamedManager
}

// Takes reports whether a Namespace belongs to the set. One that does not exist, nil, belongs to none.
func (s Set) Takes(namespace *corev1.Namespace) bool {
	return namespace != nil && Set(namespace.Labels[LabelSet]) == s
}

// Manages reports whether a ServiceImport, Service or EndpointSlice belongs to the controller of this set, which changes
// and deletes no others.
func (s Set) Manages(object metav1.Object) bool {
	labels := object.GetLabels()
	return labels[managedBy(object)] == s.Manager() && (s == "" || labels[LabelSet] == string(s))
}

// Mark gives a ServiceImport, Service or EndpointSlice the labels of this set.
func (s Set) Mark(object metav1.Object) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[managedBy(object)] = s.Manager()
	if s == "" {
		delete(labels, LabelSet)
	} else {
		labels[LabelSet] = string(s)
	}
	object.SetLabels(labels)
}

// Selector returns the labels with which Mark marks EndpointSlices, as a label selector that excludes those of other
// sets.
func (s Set) Selector() string {
	if s == "" {
		return "!" + LabelSet
	}
	return LabelSet + "=" + string(s)
}

// IsDerivedFor reports whether a Service of the controller of this set is derived from the service of that name. It is
// also true if DerivedFor finds no service, because another writer may have changed the labels.
func (s Set) IsDerivedFor(derived *corev1.Service, service string) bool {
	of := DerivedFor(derived)
	return s.Manages(derived) && (of == "" || of == service)
}

// IsManaged reports whether a ServiceImport, Service or EndpointSlice belongs to a controller of this project, of any
// set.
func IsManaged(object metav1.Object) bool {
	manager := object.GetLabels()[managedBy(object)]
	return manager == Manager || manager == NamedManager
}

// managedBy returns the key of the managed-by label of an object.
func managedBy(object metav1.Object) string {
	if _, slice := object.(*discoveryv1.EndpointSlice); slice {
		return LabelSliceManagedBy
	}
	return LabelManagedBy
}

// SPDX-License-Identifier: Apache-2.0

// Package merge decides what the exports of all clusters become in this one.
//
// The flow is one call: the views of all clusters, this cluster's own among
// them, and what is observed here go in; the objects that should exist here and
// the conditions of this cluster's ServiceExport come out. The package is pure:
// the same answer for the same input in any order, and neither input is
// changed. What must be equal in all clusters (type, ports, affinity, policies,
// exported metadata, clusters) depends on the views alone.
package merge

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Observed is what a merge must know of the cluster that it is made in.
type Observed struct {
	// Cluster is the id of this cluster.
	Cluster string
	// Service is the namespace and name that all views have.
	Service types.NamespacedName
	// IPFamilies are those that a Service of this cluster can have.
	IPFamilies []corev1.IPFamily
	// ServiceImport is the import as it exists here, nil where none does. Its
	// name, UID and IPs are kept.
	ServiceImport *v1beta1.ServiceImport
	// ServiceExport is this cluster's own, nil where none exists.
	ServiceExport *v1beta1.ServiceExport
	// DerivedService is the Service behind the import as it exists here, nil
	// where none does.
	DerivedService *corev1.Service
}

// Result is what should exist in this cluster. Its objects are new and belong
// to the caller.
type Result struct {
	// ServiceImport is nil where no cluster exports the service.
	ServiceImport *v1beta1.ServiceImport
	// DerivedService is nil for a headless import and where there is no import.
	DerivedService *corev1.Service
	// EndpointSlices are this cluster's published slices and the copies of the
	// others', sorted by name.
	EndpointSlices []*discoveryv1.EndpointSlice
	// ExportConditions are those of this cluster's ServiceExport, sorted by
	// type, without lastTransitionTime; empty where it has none.
	ExportConditions []metav1.Condition
}

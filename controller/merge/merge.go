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
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
)

// Observed is what a merge must know of the cluster that it is made in.
type Observed struct {
	// Cluster is the id of this cluster.
	Cluster string
	// Service is the namespace and name that all views have.
	Service types.NamespacedName
	// APIVersion is the group and version of the MCS API that this cluster
	// serves, for owner references; empty means multicluster.x-k8s.io/v1beta1.
	APIVersion string
	// IPFamilies are those that a Service of this cluster can have; empty where
	// that is not known, and then the API server has the say.
	IPFamilies []corev1.IPFamily
	// ServiceImport is the import as it exists here, nil where none does.
	ServiceImport *v1beta1.ServiceImport
	// ServiceExport is this cluster's own, nil where none exists.
	ServiceExport *v1beta1.ServiceExport
	// Invalid says why this cluster's ServiceExport contributes nothing. It is
	// nil where it contributes, and where there is none.
	Invalid *export.Invalid
	// Problems are what was left out of this cluster's own view. They are told
	// in the message of the condition Valid.
	Problems []export.Problem
	// DerivedService is the Service behind the import as it exists here, nil
	// where none does. Its name is export.DerivedServiceName.
	DerivedService *corev1.Service
	// ServeHandMade asks for a ServiceImport that a person wrote to be served,
	// where no cluster exports the service. The annotation
	// export.AnnotationServe on the import asks for the same.
	ServeHandMade bool
	// HandMadeSlices are the EndpointSlices here that carry the service's name
	// in the label export.LabelService and that nobody manages but a person.
	HandMadeSlices []*discoveryv1.EndpointSlice
	// Nodes are those of this cluster, as far as hints depend on them.
	Nodes locality.Nodes
	// Prefer is what the operator prefers for imports that wish nothing
	// themselves: locality.PreferCluster, or locality.PreferNone or empty.
	Prefer string
	// Unsupported is what the API server of this cluster does not know.
	Unsupported Unsupported
}

// A Contribution is what one cluster adds to the merge.
type Contribution struct {
	// View is never nil. No two contributions have the same cluster.
	View *export.View
	// Demote asks for the endpoints of the cluster to be used only where no
	// other cluster has a ready one for the port: the cluster is silent or
	// drained. All else of the contribution stays as it is.
	Demote bool
}

// Result is what should exist in this cluster. Its objects are new, and the
// caller may set fields of them. What their pointers and lists hold, the
// endpoints of slices above all, they share with the views, where nobody
// changes it.
//
// What exists, carries the label of this controller and is not in the Result
// is to be deleted, after the rest is written: a service is exported as long as
// it has a slice, so that a new slice has to be there before an old one goes.
type Result struct {
	// ServiceImport is nil where no cluster exports the service, and where one
	// exists that this controller did not make and neither serves nor has to
	// take back what serving brought; one that it did not make is never deleted. Its spec, metadata and status
	// are complete. Where one exists it is a copy of that with the changes
	// made, so that it can be compared and written as it is.
	//
	// Conditions have the lastTransitionTime of the observed one where the
	// status stays, and none where it changes: the writer sets it.
	ServiceImport *v1beta1.ServiceImport
	// DerivedService is nil for a headless import, where there is no import,
	// and where one exists that this controller did not make. Where one exists
	// it is a copy of that with the changes made. See NeedsRecreation.
	DerivedService *corev1.Service
	// EndpointSlices are this cluster's published slices and the copies of the
	// others', sorted by name.
	EndpointSlices []*discoveryv1.EndpointSlice
	// HandMadeSlices are copies of those observed that need the label of the
	// derived Service, with that label, or no longer do, without it, sorted by
	// name. They are never deleted.
	HandMadeSlices []*discoveryv1.EndpointSlice
	// ExportConditions are those of this cluster's ServiceExport, sorted by
	// type, with lastTransitionTime as for the ServiceImport; empty where there
	// is none.
	ExportConditions []metav1.Condition
}

// Merge decides what the contributions of all clusters become here.
//
// The derived Service and the copies of other clusters' slices are owned by the
// ServiceImport, this cluster's own slices by its ServiceExport. Where the
// ServiceImport does not exist yet its UID in the owner references is empty:
// SetImportUID fills it in once it does.
func Merge(observed Observed, contributions []Contribution) Result {
	contributions = byPrecedence(contributions)
	agreed := decide(contributions)
	result := Result{ExportConditions: exportConditions(observed, contributions, agreed)}

	if servesHandMade(observed, contributions) {
		serveHandMade(observed, &result)
		return result
	}
	if adopts(observed, contributions) {
		observed.ServiceImport = adopted(observed.ServiceImport)
	}
	if foreign(observed.ServiceImport) {
		// The others read this cluster's own slices whatever stands here.
		own := slices.DeleteFunc(contributions, func(c Contribution) bool { return c.View.Cluster != observed.Cluster })
		result.EndpointSlices = endpointSlices(observed, agreed, own, nil)
		retireHandMade(observed, &result)
		return result
	}
	switch {
	case len(contributions) > 0:
		result.ServiceImport = serviceImport(observed, agreed)
		result.EndpointSlices = endpointSlices(observed, agreed, contributions, hintsOf(observed, result.ServiceImport, contributions))
	case keepsImport(observed):
		result.ServiceImport = observed.ServiceImport.DeepCopy()
	default:
		return result
	}
	result.DerivedService = derivedService(observed, result.ServiceImport)
	if derived := result.DerivedService; derived != nil && derived.Spec.TrafficDistribution == nil {
		derived.Spec.TrafficDistribution = hintedDistribution(observed, result.ServiceImport)
	}
	if existing, derived := observed.DerivedService, result.DerivedService; agreed.spec == nil && derived != nil && existing != nil && export.IsManaged(existing) {
		// Nobody says anything else of it, and an older schema of the import may not keep all that it has.
		derived.Spec = *existing.Spec.DeepCopy()
	}
	setStatus(observed, agreed, &result)
	return result
}

// byPrecedence is the contributions in a new list, the oldest export first and
// equally old ones by cluster.
func byPrecedence(contributions []Contribution) []Contribution {
	return slices.SortedFunc(slices.Values(contributions), func(a, b Contribution) int {
		return cmp.Or(a.View.Spec.Created.Compare(b.View.Spec.Created), cmp.Compare(a.View.Cluster, b.View.Cluster))
	})
}

// keepsImport reports whether the import stays although no cluster exports the
// service: this cluster still wants to, but its Service does not exist now. An
// IP that clients know must not change because a Service is replaced.
func keepsImport(observed Observed) bool {
	return observed.ServiceImport != nil && observed.ServiceExport != nil && observed.ServiceExport.DeletionTimestamp == nil &&
		observed.Invalid != nil && observed.Invalid.Reason == string(v1beta1.ServiceExportReasonNoService)
}

// foreign reports whether a ServiceImport exists that this controller did not
// make.
func foreign(imported *v1beta1.ServiceImport) bool {
	return imported != nil && !export.IsManaged(imported)
}

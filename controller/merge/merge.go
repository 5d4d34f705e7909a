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
	// DerivedService is the Service of the name export.DerivedServiceName as it
	// exists here, nil if none does. It may belong to another service, whose
	// derived Service has the same name: see Namesakes.
	DerivedService *corev1.Service
	// Namesakes are the other ServiceImports of this cluster whose derived
	// Services have the same name as this service's, in any order. Only one of
	// them can have its Service: that which has it, or else the oldest.
	Namesakes []*v1beta1.ServiceImport
	// TakenIPs are those IPs of ServiceImport that derived Services of other
	// imports have: somebody deleted the derived Service, and the API server gave
	// its IP away.
	TakenIPs []string
	// Denied says that the namespace takes no part in the cluster set: hand-made
	// imports are not served either, for any cluster that asks.
	Denied bool
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
	// NoIP says why the import may not get a cluster IP, empty if it may. It is
	// set only for an import that has none.
	NoIP string
	// Unsupported is what the API server of this cluster does not know.
	Unsupported Unsupported
}

// A Contribution is what one cluster adds to the merge.
type Contribution struct {
	// View is never nil. No two contributions have the same cluster. One that is
	// Absent keeps an import that exists, and adds nothing to it.
	View *export.View
	// Demote asks for the endpoints of the cluster to be used only where no
	// other cluster has a ready one for the port: the cluster is silent or
	// drained. All else of the contribution stays as it is.
	Demote bool
	// Rank is the operator's, 0 by default. A lower rank precedes a higher one,
	// whatever the creation times, which a cluster states itself. The import is
	// the same everywhere only if the ranks are.
	Rank int
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
	// ServiceImport is nil where no cluster exports the service and none keeps the
	// import that exists, and where one
	// exists that this controller did not make and neither serves nor has to
	// take back what serving brought; one that it did not make is never deleted. Its spec, metadata and status
	// are complete. Where one exists it is a copy of that with the changes
	// made, so that it can be compared and written as it is.
	//
	// Conditions have the lastTransitionTime of the observed one where the
	// status stays, and none where it changes: the writer sets it.
	ServiceImport *v1beta1.ServiceImport
	// DerivedService is nil for a headless import, if there is no import, and
	// if the name belongs to a Service that this controller did not make or
	// made for another service. If it exists the result is a copy of it with
	// the changes made. See NeedsRecreation.
	DerivedService *corev1.Service
	// EndpointSlices are this cluster's published slices and the copies of the
	// others', sorted by name.
	EndpointSlices []*discoveryv1.EndpointSlice
	// HandMadeSlices are copies of those observed that need the label of the
	// derived Service, with that label, or no longer do, without it, sorted by
	// name. They are never deleted.
	HandMadeSlices []*discoveryv1.EndpointSlice
	// ExportConditions are those of this cluster's ServiceExport, sorted by
	// type, with lastTransitionTime as for the ServiceImport. They are empty if
	// there is none, or if they are left to another implementation.
	ExportConditions []metav1.Condition
}

// Merge decides what the contributions of all clusters become here.
//
// The derived Service and the copies of other clusters' slices are owned by the
// ServiceImport, this cluster's own slices by its ServiceExport. While the
// ServiceImport does not exist its UID in the owner references is empty: the
// caller writes the ServiceImport alone, and merges again with what it got.
func Merge(observed Observed, contributions []Contribution) Result {
	contributions, absent := divide(contributions)
	agreed := decide(contributions)
	result := Result{ExportConditions: exportConditions(observed, contributions, agreed)}

	if servesHandMade(observed, contributions) {
		serveHandMade(observed, &result)
		result.EndpointSlices = absentSlices(observed, onlyOwn(observed, absent))
		return result
	}
	if adopts(observed, contributions) {
		observed.ServiceImport = adopted(observed.ServiceImport)
	}
	if foreign(observed.ServiceImport) {
		// The others read this cluster's own slices whatever import exists here.
		result.EndpointSlices = append(endpointSlices(observed, agreed, onlyOwn(observed, contributions), nil),
			absentSlices(observed, onlyOwn(observed, absent))...)
		retireHandMade(observed, &result)
		return result
	}
	switch {
	case len(contributions) > 0:
		result.ServiceImport = serviceImport(observed, agreed)
		result.EndpointSlices = endpointSlices(observed, agreed, contributions,
			hintsOf(observed, result.ServiceImport, contributions))
	case observed.ServiceImport != nil && len(absent) > 0:
		result.ServiceImport = observed.ServiceImport.DeepCopy()
	default:
		// Without an import nothing here owns the copies of other clusters' slices.
		result.EndpointSlices = absentSlices(observed, onlyOwn(observed, absent))
		return result
	}
	result.EndpointSlices = append(result.EndpointSlices, absentSlices(observed, absent)...)
	slices.SortFunc(result.EndpointSlices, byName)
	result.DerivedService = derivedService(observed, result.ServiceImport)
	if derived := result.DerivedService; derived != nil && derived.Spec.TrafficDistribution == nil {
		derived.Spec.TrafficDistribution = hintedDistribution(observed, result.ServiceImport)
	}
	if existing, derived := observed.DerivedService, result.DerivedService; agreed.spec == nil && derived != nil &&
		existing != nil && export.IsManaged(existing) {
		// Nobody says anything else of it, and an older schema of the import may not keep all that it has.
		derived.Spec = *existing.Spec.DeepCopy()
	}
	setStatus(observed, agreed, absent, &result)
	return result
}

// divide returns the contributions in new lists: those of an export that has
// its Service in their precedence, by rank, then the oldest export first, then
// by cluster; and the absent ones by cluster.
func divide(contributions []Contribution) (present, absent []Contribution) {
	for _, contribution := range contributions {
		if contribution.View.Absent() {
			absent = append(absent, contribution)
		} else {
			present = append(present, contribution)
		}
	}
	slices.SortFunc(present, func(a, b Contribution) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank),
			older(a.View, b.View))
	})
	slices.SortFunc(absent, func(a, b Contribution) int { return cmp.Compare(a.View.Cluster, b.View.Cluster) })
	return present, absent
}

// onlyOwn is the contribution of the local cluster, in a new list.
func onlyOwn(observed Observed, contributions []Contribution) []Contribution {
	return slices.DeleteFunc(slices.Clone(contributions),
		func(c Contribution) bool { return c.View.Cluster != observed.Cluster })
}

// foreign reports whether a ServiceImport exists that this controller did not
// make.
func foreign(imported *v1beta1.ServiceImport) bool {
	return imported != nil && !export.IsManaged(imported)
}

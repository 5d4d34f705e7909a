// SPDX-License-Identifier: Apache-2.0

// Package merge turns the exports of all clusters into the objects of the local cluster.
//
// Merge takes the views of all clusters and the observed state of the local cluster, and returns the desired objects
// and the conditions of the local ServiceExport. The package is pure: the result does not depend on the order of the
// input, which stays unchanged. Properties that must be equal in all clusters (type, ports, affinity, policies,
// exported metadata, clusters) depend only on the contributions.
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
)

// Observed is the state of the local cluster that a merge depends on.
type Observed struct {
	// Cluster is the id of this cluster.
	Cluster string
	// Service is the namespace and name of the merged service.
	Service types.NamespacedName
	// APIVersion is the group and version of the served MCS API, for owner references.
	APIVersion string
	// IPFamilies are the families that Services can have.
	IPFamilies []corev1.IPFamily
	// ServiceImport is the existing import, nil for none.
	ServiceImport *v1beta1.ServiceImport
	// ServiceExport is this cluster's ServiceExport, nil for none.
	ServiceExport *v1beta1.ServiceExport
	// Invalid is why the ServiceExport contributes nothing. It is nil if it contributes or does not exist.
	Invalid *export.Invalid
	// Problems list the parts left out of this cluster's view, for the condition Valid.
	Problems []export.Problem
	// DerivedService is the existing Service with the name export.DerivedServiceName, nil for none. It may belong to
	// another service whose derived Service has the same name.
	DerivedService *corev1.Service
	// NodePortsFor is the exported Service if it needs a Service with node ports beside it, nil if not. NodePorts is the
	// existing Service with the name export.NodePortServiceName, nil for none.
	NodePortsFor, NodePorts *corev1.Service
	// TakenIPs are the IPs of ServiceImport that other Services got while the derived Service did not exist. Clients of
	// these IPs would reach another service.
	TakenIPs []string
	// Place decides in which order endpoints are used.
	Place Placing
	// NoIP is why the import may not get a cluster IP, empty if it may. It is set only for imports without an IP.
	NoIP string
	// EndpointSlices are the existing slices of the service with the label of this controller.
	EndpointSlices []*discoveryv1.EndpointSlice
}

// A Contribution is the export of one cluster.
type Contribution struct {
	// View is never nil. No two contributions have the same cluster. An Absent view keeps an existing import and adds
	// nothing to it.
	View *export.View
	// Demote asks for the endpoints of the cluster to be used only if no other cluster has a ready one for the port: the
	// cluster is unreachable or drained.
	Demote bool
	// Rank is the cluster's rank, 0 by default. A lower rank precedes a higher one regardless of creation times, which
	// clusters state themselves. Imports are the same in all clusters only if the ranks are.
	Rank int
}

// Result is the desired state of this cluster. Its objects are new, and the caller may set their fields. Pointers and
// lists in them, such as the endpoints of slices, are shared with the views and immutable.
//
// Existing objects that carry the label of this controller and are not in the Result must be deleted, after the others
// were written: a service is exported as long as it has a slice, so a new slice must exist before an old one is
// deleted.
type Result struct {
	// Foreign reports whether the service is exported, but not imported because a foreign import has its name.
	Foreign bool
	// ServiceImport is nil if no cluster exports the service or keeps its import, and if a foreign import exists. Foreign
	// imports are never deleted. Spec and metadata are complete. If the import exists this is a changed copy, which can be
	// compared and written as it is. The status has the conditions that the controller decides, without generation and
	// time.
	ServiceImport *v1beta1.ServiceImport
	// DerivedService is nil for a headless import, without an import, and if the name belongs to another owner or
	// service. If it exists this is a changed copy. See NeedsRecreation.
	DerivedService *corev1.Service
	// NodePorts is the Service with node ports for clusters of other networks, nil for none. If it exists this is a changed copy.
	NodePorts *corev1.Service
	// EndpointSlices are this cluster's published slices and the copies of members' slices.
	EndpointSlices []*discoveryv1.EndpointSlice
	// ExportConditions are the decided conditions of this cluster's ServiceExport, without generation and time. They are
	// empty if there is no ServiceExport or another implementation writes them.
	ExportConditions []metav1.Condition
}

// Merge merges the contributions of all clusters.
//
// The ServiceImport owns the derived Service and the copies of members' slices; the ServiceExport owns this cluster's
// slices. While the ServiceImport does not exist its UID in owner references is empty: the caller writes nothing
// that the import owns, and merges again.
func Merge(observed Observed, contributions []Contribution) Result {
	result, _ := Decide(observed, contributions)
	return result
}

// Decide returns the Result of Merge, and the Decision.
func Decide(observed Observed, contributions []Contribution) (Result, Decision) {
	contributions, absent := divide(contributions)
	all, agreed := slices.Concat(contributions, absent), resolve(contributions)
	if foreign(observed) && Adopted(observed.ServiceImport) && len(contributions) > 0 {
		// The import keeps its IPs. If its Service has the name of the derived one, as with the reference implementation and
		// Cilium, the Service is adopted, too. Otherwise the derived Service is created once the other Service is deleted.
		observed.ServiceImport = observed.ServiceImport.DeepCopy()
		export.Mark(observed.ServiceImport)
	}
	result := Result{ExportConditions: exportConditions(observed, agreed), NodePorts: nodePorts(observed)}
	switch {
	case foreign(observed):
		result.Foreign = len(contributions) > 0
	case len(contributions) > 0:
		result.ServiceImport = serviceImport(observed, agreed)
	case observed.ServiceImport != nil && len(absent) > 0:
		result.ServiceImport = observed.ServiceImport.DeepCopy()
	}
	agreed.Placement = observed.Place(cmp.Or(result.ServiceImport, &v1beta1.ServiceImport{}), contributions)
	if result.ServiceImport == nil {
		// Without an import, nothing owns copies of members' slices. Members still read the slices of this cluster.
		all = slices.DeleteFunc(all, func(c Contribution) bool { return c.View.Cluster != observed.Cluster })
		result.EndpointSlices = endpointSlices(observed, agreed, all)
		return result, agreed
	}
	result.EndpointSlices = endpointSlices(observed, agreed, all)
	result.DerivedService = derivedService(observed, agreed, result.ServiceImport)
	setStatus(observed, agreed, absent, result.ServiceImport)
	if imported := result.ServiceImport; waitsForIP(observed, imported) {
		imported.Spec.Type = v1beta1.Headless
		delete(imported.Annotations, export.AnnotationDerivedService)
	}
	return result, agreed
}

// waitsForIP reports whether a headless import changes to a type with an IP, but has no IP yet. DNS could not answer for
// it, so the old type stays until then.
func waitsForIP(observed Observed, imported *v1beta1.ServiceImport) bool {
	before := observed.ServiceImport
	return before != nil && before.Spec.Type == v1beta1.Headless && export.IsManaged(before) &&
		imported.Spec.Type == v1beta1.ClusterSetIP && len(imported.Spec.IPs) == 0
}

// divide returns two new lists: the contributions whose Service exists in their precedence, which is by rank, age and
// cluster; and the absent ones by cluster.
func divide(contributions []Contribution) (present, absent []Contribution) {
	present = slices.DeleteFunc(slices.Clone(contributions), func(c Contribution) bool { return c.View.Absent() })
	absent = slices.DeleteFunc(slices.Clone(contributions), func(c Contribution) bool { return !c.View.Absent() })
	slices.SortFunc(present, func(a, b Contribution) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), a.View.Spec.Created.Compare(b.View.Spec.Created),
			cmp.Compare(a.View.Cluster, b.View.Cluster))
	})
	slices.SortFunc(absent, func(a, b Contribution) int { return cmp.Compare(a.View.Cluster, b.View.Cluster) })
	return present, absent
}

// foreign reports whether a ServiceImport exists and has another owner than this controller.
func foreign(observed Observed) bool {
	return observed.ServiceImport != nil && !export.IsManaged(observed.ServiceImport)
}

// Adopted reports whether the annotation export.AnnotationAdopt asks this controller to adopt a ServiceImport of another
// implementation. It remains true after the adoption, because the derived Service may have to wait until the other
// implementation's Service frees the IP. It is false for nil.
func Adopted(imported *v1beta1.ServiceImport) bool {
	return imported != nil && imported.DeletionTimestamp == nil &&
		imported.Annotations[export.AnnotationAdopt] == "true"
}

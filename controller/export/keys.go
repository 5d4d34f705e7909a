// SPDX-License-Identifier: Apache-2.0

package export

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Labels and annotations of ServiceImports, ServiceExports, Services and
// EndpointSlices. Those of Secrets and Leases are in member and memberstate.
const (
	// Domain is the domain of the project's own keys. Exports cannot set keys
	// of it or of its subdomains on an import.
	Domain = "clusterset-dns.github.io"

	// Manager is the value of the managed-by labels on everything that the
	// controller made. What does not carry it is not changed or deleted.
	Manager = "clusterset-controller." + Domain
	// LabelManagedBy is the managed-by label of ServiceImports and Services.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelSliceManagedBy is the managed-by label of EndpointSlices.
	LabelSliceManagedBy = discoveryv1.LabelManagedBy

	// LabelService names the multi-cluster service of a slice or of a derived
	// Service (KEP-1645).
	LabelService = v1beta1.LabelServiceName
	// LabelSourceCluster is the id of the cluster whose endpoints a slice
	// holds (KEP-1645).
	LabelSourceCluster = v1beta1.LabelSourceCluster
	// LabelKubernetesService names the Service whose endpoints kube-proxy
	// takes a slice's to be.
	LabelKubernetesService = discoveryv1.LabelServiceName
	// LabelHeadless keeps kube-proxy from a slice. Its value is empty.
	LabelHeadless = "service.kubernetes.io/headless"

	// AnnotationDerivedService on a ServiceImport names the Service behind it,
	// as the reference implementation does.
	AnnotationDerivedService = "multicluster.kubernetes.io/derived-service"
	// AnnotationTriggerTime says when the change that caused a slice's present
	// endpoints happened, by the clock of its source cluster, as RFC 3339. It is
	// not Kubernetes' own key: from that one, kube-proxy would measure how long
	// it took with this cluster's clock, and again whenever a demotion or a hint
	// changes the slice long after.
	AnnotationTriggerTime = Domain + "/last-change-trigger-time"
	// AnnotationSnapshotPrefix begins the key of every version of the
	// snapshot; the version follows, as in "v1".
	AnnotationSnapshotPrefix = "snapshot." + Domain + "/"
	// AnnotationServe on a ServiceImport that a person wrote asks for it to be
	// served when its value is "true".
	AnnotationServe = Domain + "/serve"
	// AnnotationAdopt on a ServiceImport of another implementation asks for it
	// to be taken over, with its IPs, when its value is "true".
	AnnotationAdopt = Domain + "/adopt"
	// AnnotationExported on a ServiceImport lists the keys of its labels and
	// annotations that come from the exports, as JSON. Only these are removed
	// once they are no longer exported: all others were set by somebody else.
	AnnotationExported = Domain + "/exported"
	// AnnotationPrefer among the exported annotations of a ServiceExport says
	// which endpoints its clients prefer. It is the only key of Domain that an
	// export may set on an import.
	AnnotationPrefer = Domain + "/prefer"
)

// IsManaged reports whether the controller made the object, a ServiceImport,
// Service or EndpointSlice.
func IsManaged(object metav1.Object) bool {
	key := LabelManagedBy
	if _, slice := object.(*discoveryv1.EndpointSlice); slice {
		key = LabelSliceManagedBy
	}
	return object.GetLabels()[key] == Manager
}

// SPDX-License-Identifier: Apache-2.0

package export

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// Labels and annotations of ServiceImports, ServiceExports, Services and
// EndpointSlices. Those of Secrets, Leases and namespaces are in member, memberstate and scope.
const (
	// Domain is the domain of the project's own keys. Exports cannot set keys of it or of its subdomains on an import.
	Domain = "clusterset-dns.github.io"

	// Manager is the value of the managed-by labels on all objects of the controller.
	Manager = "clusterset-controller." + Domain
	// LabelManagedBy is the managed-by label of ServiceImports and Services.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelSliceManagedBy is the managed-by label of EndpointSlices.
	LabelSliceManagedBy = discoveryv1.LabelManagedBy

	// LabelService names the multi-cluster service of a slice or of a derived Service (KEP-1645).
	LabelService = v1beta1.LabelServiceName
	// LabelSourceCluster is the id of the cluster whose endpoints a slice holds (KEP-1645).
	LabelSourceCluster = v1beta1.LabelSourceCluster
	// LabelKubernetesService names the Service to which kube-proxy assigns a slice.
	LabelKubernetesService = discoveryv1.LabelServiceName
	// LabelExposed names the multi-cluster service of a published slice with addresses for clusters of other networks, in
	// place of LabelService: no DNS server and no kube-proxy of the exporting cluster uses it.
	LabelExposed = Domain + "/exposed-service"
	// LabelHeadless makes kube-proxy ignore a slice. Its value is empty.
	LabelHeadless = "service.kubernetes.io/headless"

	// AnnotationDerivedService on a ServiceImport names the Service behind it, as the reference implementation does.
	AnnotationDerivedService = "multicluster.kubernetes.io/derived-service"
	// AnnotationTriggerTime is the RFC 3339 time of the change that caused the current endpoints of a slice, by the clock
	// of its source cluster. With Kubernetes' own key kube-proxy would measure its latency against this cluster's clock,
	// even when a demotion or a hint changes the slice much later.
	AnnotationTriggerTime = Domain + "/last-change-trigger-time"
	// AnnotationSRV on a slice of a headless import tells DNS servers the priority and weight of its endpoints in SRV
	// answers, and which endpoints really terminate: demoted ones have this condition, too.
	AnnotationSRV = Domain + "/srv"
	// AnnotationSnapshotPrefix precedes the version of the format in the key of a snapshot.
	AnnotationSnapshotPrefix = "snapshot." + Domain + "/"
	// AnnotationSnapshot on a published slice or its copy is the snapshot of the export, in the version that this program
	// writes and reads.
	AnnotationSnapshot = AnnotationSnapshotPrefix + "v1"
	// AnnotationAdopt on a ServiceImport of another implementation: "true" makes the controller adopt it with its IPs, if a
	// cluster exports the service.
	AnnotationAdopt = Domain + "/adopt"
	// AnnotationExported on a ServiceImport lists, as JSON, the keys of its labels and annotations that come from
	// exports. Only these are removed once they are no longer exported.
	AnnotationExported = Domain + "/exported"
	// AnnotationExpose on a ServiceExport: how clusters of other networks reach the service: NodePort, LoadBalancer, Gateway
	// or None.
	AnnotationExpose = Domain + "/expose"
	// AnnotationNodeAddress on a Node: IP addresses, separated by commas, by which other networks reach the node,
	// instead of the addresses in its status.
	AnnotationNodeAddress = Domain + "/address"
	// AnnotationClusters on a ServiceExport: cluster selector of the clusters that the export is for; by default all.
	AnnotationClusters = Domain + "/clusters"
	// AnnotationPrefer in spec.exportedAnnotations: endpoints that clients use first: cluster, none, or tiers of clusters.
	AnnotationPrefer = Domain + "/prefer"
	// AnnotationAllowedClusters in spec.exportedAnnotations: cluster selector of the allowed clusters, the only ones whose
	// endpoints are ever used; by default all.
	AnnotationAllowedClusters = Domain + "/allowed-clusters"
	// AnnotationWeights in spec.exportedAnnotations: shares of the traffic: id=percent of each cluster, separated by commas.
	AnnotationWeights = Domain + "/weights"
	// AnnotationOverloaded on a ServiceExport: "true" while the cluster is overloaded for the service.
	AnnotationOverloaded = Domain + "/overloaded"
)

// ExportedKeys are the only keys of Domain that an export may set on an import, all of them annotations. On an import,
// only exports set them.
var ExportedKeys = []string{AnnotationPrefer, AnnotationAllowedClusters, AnnotationWeights}

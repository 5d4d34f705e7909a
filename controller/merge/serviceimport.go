// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// exportedKeys is the value of export.AnnotationExported: the keys that come from exports, sorted.
type exportedKeys struct {
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
}

// serviceImport returns the import without its status.
func serviceImport(observed Observed, agreed Decision) *v1beta1.ServiceImport {
	imported := &v1beta1.ServiceImport{}
	if observed.ServiceImport != nil {
		imported = observed.ServiceImport.DeepCopy()
	}
	imported.Namespace, imported.Name = observed.Service.Namespace, observed.Service.Name
	var before exportedKeys
	_ = json.Unmarshal([]byte(imported.Annotations[export.AnnotationExported]), &before) // it may be missing or invalid
	imported.Labels = importMetadata(imported.Labels, agreed.spec.Labels, before.Labels)
	export.Mark(imported)
	imported.Annotations = importMetadata(imported.Annotations, agreed.spec.Annotations, before.Annotations)
	delete(imported.Annotations, export.AnnotationDerivedService)
	delete(imported.Annotations, export.AnnotationExported)
	if len(agreed.spec.Labels)+len(agreed.spec.Annotations) > 0 {
		text, _ := json.Marshal(exportedKeys{ // strings always marshal
			slices.Sorted(maps.Keys(agreed.spec.Labels)), slices.Sorted(maps.Keys(agreed.spec.Annotations)),
		})
		imported.Annotations[export.AnnotationExported] = string(text)
	}

	families := localFamilies(observed, agreed)
	imported.Spec = v1beta1.ServiceImportSpec{
		Ports:                 agreed.ports,
		Type:                  agreed.spec.Type,
		SessionAffinity:       agreed.spec.SessionAffinity,
		SessionAffinityConfig: agreed.spec.SessionAffinityConfig.DeepCopy(),
		IPFamilies:            families,
		InternalTrafficPolicy: ptr.To(agreed.spec.InternalTrafficPolicy),
	}
	if agreed.spec.TrafficDistribution != "" {
		imported.Spec.TrafficDistribution = ptr.To(agreed.spec.TrafficDistribution)
	}
	if agreed.spec.Type == v1beta1.ClusterSetIP {
		imported.Spec.IPs = firstOf(families, knownIPs(observed)) // of the first family if of any: see localFamilies
		imported.Annotations[export.AnnotationDerivedService] = export.DerivedServiceName(observed.Service)
	}
	return imported
}

// importMetadata returns the exported labels or annotations, and the observed ones that were not exported before: these
// are of other writers. Only exports set export.ExportedKeys. The map is new.
func importMetadata(observed, exported map[string]string, before []string) map[string]string {
	merged := make(map[string]string, len(observed)+len(exported)+1)
	maps.Copy(merged, observed)
	for _, key := range before {
		if !export.IsReservedKey(key) {
			delete(merged, key)
		}
	}
	for _, key := range export.ExportedKeys {
		delete(merged, key)
	}
	maps.Copy(merged, exported)
	return merged
}

// localFamilies returns the families that this cluster has in common with the exports. The family of the import's first
// IP comes first; the others have the order of the exports.
func localFamilies(observed Observed, agreed Decision) []corev1.IPFamily {
	var common []corev1.IPFamily
	for _, family := range agreed.families {
		if slices.Contains(observed.IPFamilies, family) {
			common = append(common, family)
		}
	}
	if known := knownIPs(observed); len(known) > 0 && agreed.spec.Type != v1beta1.Headless {
		if at := slices.Index(common, export.FamilyOf(known[0])); at > 0 {
			common[0], common[at] = common[at], common[0]
		}
	}
	return common
}

// setStatus sets the status of the import.
func setStatus(observed Observed, agreed Decision, absent []Contribution, imported *v1beta1.ServiceImport) {
	status := v1beta1.ServiceImportStatus{EndpointSliceObjects: v1beta1.EndpointSliceObjectsAbsent}
	if agreed.spec != nil {
		status.EndpointSliceObjects = v1beta1.EndpointSliceObjectsPresent
	}
	for _, each := range agreed.Precedence {
		status.Clusters = append(status.Clusters, v1beta1.ClusterStatus{Cluster: each.View.Cluster})
	}
	slices.SortFunc(status.Clusters, func(a, b v1beta1.ClusterStatus) int { return cmp.Compare(a.Cluster, b.Cluster) })
	status.Conditions = append([]metav1.Condition{importReady(observed, agreed, absent, imported)}, agreed.Placement.Conditions()...)
	imported.Status = status
}

// Reasons of the import's condition Ready, besides those of the API.
const (
	// ReasonForeignService: a Service of another owner has the name of the derived Service.
	ReasonForeignService = "ForeignService"
	// ReasonClusterIPLimit: the exporting members used up their share of the cluster IPs.
	ReasonClusterIPLimit = "ClusterIPLimit"
)

func importReady(observed Observed, agreed Decision, absent []Contribution,
	imported *v1beta1.ServiceImport,
) metav1.Condition {
	not := func(reason, format string, args ...any) metav1.Condition {
		return condition(v1beta1.ServiceImportConditionReady, metav1.ConditionFalse, reason, fmt.Sprintf(format, args...))
	}
	derived := observed.DerivedService
	families := imported.Spec.IPFamilies
	switch {
	case agreed.spec == nil:
		return not(string(v1beta1.ServiceImportReasonPending),
			"No cluster exports the service. The import stays for the ServiceExport of %s, whose Service does not exist.",
			export.Listed(texts(absent, func(c Contribution) string { return strconv.Quote(c.View.Cluster) })))
	case len(families) == 0:
		return not(string(v1beta1.ServiceImportReasonIPFamilyNotSupported),
			"The service is exported with %s, this cluster has %s.", familiesText(agreed.families),
			familiesText(observed.IPFamilies))
	case imported.Spec.Type == v1beta1.ClusterSetIP && foreignService(observed):
		return not(ReasonForeignService,
			"Service %s/%s was not made for this import by %s. Delete it to have the service imported.", derived.Namespace,
			derived.Name, export.Manager)
	case imported.Spec.Type == v1beta1.ClusterSetIP && observed.NoIP != "":
		return not(ReasonClusterIPLimit, "%s", observed.NoIP)
	case imported.Spec.Type == v1beta1.ClusterSetIP && (derived == nil || len(firstOf(families, derived.Spec.ClusterIPs)) < len(families)):
		return not(string(v1beta1.ServiceImportReasonPending),
			"Service %s/%s has no IP yet.", observed.Service.Namespace, export.DerivedServiceName(observed.Service))
	}
	return condition(v1beta1.ServiceImportConditionReady, metav1.ConditionTrue, v1beta1.ServiceImportReasonReady, "The service is imported.")
}

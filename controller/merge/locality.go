// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
	"github.com/clusterset-dns/clusterset-dns/controller/traffic"
)

// ConditionPreferCluster is the type of the condition of an import that tells in which order clusters are used. Only
// imports that ask for one have the condition.
const ConditionPreferCluster = export.Domain + "/PreferCluster"

// Reasons of ConditionPreferCluster.
const (
	// ReasonHinted: hints put the local cluster first.
	ReasonHinted = "Hinted"
	// ReasonDemoted: endpoints of other clusters are demoted.
	ReasonDemoted = "Demoted"
	// ReasonUnknownPreference: the annotation export.AnnotationPrefer has an invalid value.
	ReasonUnknownPreference = "UnknownPreference"
)

// preferenceOf returns the preference of an import. It is read from the import, so that it lasts while a Service is
// replaced and no cluster exports it.
func preferenceOf(observed Observed, imported *v1beta1.ServiceImport) (locality.Preference, error) {
	return locality.PreferenceOf(ptr.Deref(imported.Spec.TrafficDistribution, ""),
		imported.Annotations[export.AnnotationPrefer], observed.Prefer)
}

// tiersOf returns the tiers of clusters of an import, and the error of preferenceOf.
func tiersOf(observed Observed, imported *v1beta1.ServiceImport) (traffic.Tiers, error) {
	return locality.TiersOf(ptr.Deref(imported.Spec.TrafficDistribution, ""),
		imported.Annotations[export.AnnotationPrefer], observed.Prefer)
}

// hinted reports whether hints put this cluster first.
func hinted(observed Observed, imported *v1beta1.ServiceImport) bool {
	tiers, _ := tiersOf(observed, imported)
	return imported.Spec.Type != v1beta1.Headless && tiers.LocalFirst() && observed.Nodes.CanPreferCluster()
}

// hintsOf returns the hints for all slices of an import, nil for none. kube-proxy does not see slices of headless ones.
func hintsOf(observed Observed, imported *v1beta1.ServiceImport, contributions []Contribution) *locality.Hints {
	if imported.Spec.Type == v1beta1.Headless {
		return nil
	}
	preference, _ := preferenceOf(observed, imported)
	preference.Node = preference.Node && !observed.Unsupported.NodeHints
	var own *export.View
	if local := onlyOwn(observed, contributions); len(local) > 0 {
		own = local[0].View
	}
	return locality.New(preference, observed.Nodes, own)
}

// hintedDistribution returns the trafficDistribution of an import's derived Service. Some data planes follow hints only
// if it is set; PreferClose is the value that most of them know.
func hintedDistribution(observed Observed, imported *v1beta1.ServiceImport) *string {
	if !hinted(observed, imported) {
		return nil
	}
	return observed.Unsupported.distribution(corev1.ServiceTrafficDistributionPreferClose)
}

// preferCondition returns the ConditionPreferCluster of an import, nil if it has none.
func preferCondition(observed Observed, agreed decision, imported *v1beta1.ServiceImport) *metav1.Condition {
	if agreed.spec == nil && meta.FindStatusCondition(imported.Status.Conditions, ConditionPreferCluster) == nil {
		return nil // an older schema of the import may have dropped the preference
	}
	condition := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{
			Type: ConditionPreferCluster, Status: status, Reason: reason, Message: message,
			ObservedGeneration: imported.Generation,
		}
	}
	tiers, err := tiersOf(observed, imported)
	switch {
	case err != nil:
		return condition(metav1.ConditionFalse, ReasonUnknownPreference,
			fmt.Sprintf("Exported annotation %s: %v.", export.AnnotationPrefer, err))
	case !tiers.Any() || imported.Spec.Type == v1beta1.Headless && tiers.OnlyLocal():
		return nil
	case !hinted(observed, imported):
		return condition(metav1.ConditionTrue, ReasonDemoted, fmt.Sprintf(
			"Endpoints are used in this order of clusters: %s. Those that wait are not ready.", tiers))
	case tiers.OnlyLocal():
		return condition(metav1.ConditionTrue, ReasonHinted, "Endpoints of this cluster are used first.")
	}
	return condition(metav1.ConditionTrue, ReasonHinted, fmt.Sprintf(
		"Endpoints are used in this order of clusters: %s. Hints put this cluster first.", tiers))
}

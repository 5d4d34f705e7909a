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
)

// ConditionPreferCluster is the type of the condition of an import that tells whether endpoints of this cluster come
// first. Only imports that ask for it have the condition.
const ConditionPreferCluster = export.Domain + "/PreferCluster"

// Reasons of ConditionPreferCluster.
const (
	// ReasonHinted: all nodes of this cluster use its endpoints first.
	ReasonHinted = "Hinted"
	// ReasonNodesWithoutZone: nodes without a zone do not.
	ReasonNodesWithoutZone = "NodesWithoutZone"
	// ReasonNoZones: no node has a zone.
	ReasonNoZones = "NoZones"
	// ReasonTooManyZones: there are more zones than the API allows in the hints of one endpoint.
	ReasonTooManyZones = "TooManyZones"
	// ReasonUnknownPreference: the annotation export.AnnotationPrefer has an unknown value.
	ReasonUnknownPreference = "UnknownPreference"
)

// preferenceOf returns the preference of an import. It is read from the import, so that it lasts while a Service is
// replaced and no cluster exports it.
func preferenceOf(observed Observed, imported *v1beta1.ServiceImport) (locality.Preference, error) {
	return locality.PreferenceOf(ptr.Deref(imported.Spec.TrafficDistribution, ""),
		imported.Annotations[export.AnnotationPrefer], observed.Prefer)
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
	if preference, _ := preferenceOf(observed, imported); !preference.Cluster || !observed.Nodes.CanPreferCluster() {
		return nil
	}
	return observed.Unsupported.distribution(corev1.ServiceTrafficDistributionPreferClose)
}

// preferCondition returns the ConditionPreferCluster of an import, nil if it has none.
func preferCondition(observed Observed, agreed decision, imported *v1beta1.ServiceImport) *metav1.Condition {
	if imported.Spec.Type == v1beta1.Headless {
		return nil
	}
	if agreed.spec == nil && meta.FindStatusCondition(imported.Status.Conditions, ConditionPreferCluster) == nil {
		return nil // an older schema of the import may have dropped the preference
	}
	condition := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{
			Type: ConditionPreferCluster, Status: status, Reason: reason, Message: message,
			ObservedGeneration: imported.Generation,
		}
	}
	preference, err := preferenceOf(observed, imported)
	switch {
	case err != nil:
		return condition(metav1.ConditionFalse, ReasonUnknownPreference,
			fmt.Sprintf("Exported annotation %s: %v.", export.AnnotationPrefer, err))
	case !preference.Cluster:
		return nil
	case len(observed.Nodes.Zones) == 0:
		return condition(metav1.ConditionFalse, ReasonNoZones,
			"No node of this cluster has the label "+corev1.LabelTopologyZone+
				", without which no endpoint can be preferred. Label the nodes.")
	case !observed.Nodes.CanPreferCluster():
		return condition(metav1.ConditionFalse, ReasonTooManyZones, fmt.Sprintf(
			"The nodes of this cluster are in more than %d zones, the most that an endpoint can be hinted for.",
			locality.MaxZones))
	case observed.Nodes.SomeWithoutZone:
		return condition(metav1.ConditionTrue, ReasonNodesWithoutZone,
			"Endpoints of this cluster are used first, but not on its nodes without the label "+
				corev1.LabelTopologyZone+". Label these nodes.")
	}
	return condition(metav1.ConditionTrue, ReasonHinted, "Endpoints of this cluster are used first.")
}

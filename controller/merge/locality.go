// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
)

// ConditionPreferCluster is the type of the condition of an import that tells
// whether endpoints of this cluster come first. Only imports for which that is
// wished have it.
const ConditionPreferCluster = export.Domain + "/PreferCluster"

// Reasons of ConditionPreferCluster.
const (
	// ReasonHinted: nodes here use endpoints of this cluster first.
	ReasonHinted = "Hinted"
	// ReasonNodesWithoutZone: some nodes do not, because they have no zone.
	ReasonNodesWithoutZone = "NodesWithoutZone"
	// ReasonNoZones: no node does.
	ReasonNoZones = "NoZones"
	// ReasonTooManyZones: the API has no room for that many hints.
	ReasonTooManyZones = "TooManyZones"
	// ReasonUnknownPreference: the annotation export.AnnotationPrefer has a
	// value that means nothing.
	ReasonUnknownPreference = "UnknownPreference"
)

// wishOf is what the clients of an import made of exports wish.
func wishOf(observed Observed, agreed decision) (locality.Wish, error) {
	return locality.WishOf(agreed.spec.TrafficDistribution, agreed.spec.Annotations[export.AnnotationPrefer], observed.Prefer)
}

// hintsOf are the hints of all slices of an import, nil for none. kube-proxy
// does not see the slices of headless ones.
func hintsOf(observed Observed, agreed decision, contributions []Contribution) *locality.Hints {
	if agreed.spec.Type == v1beta1.Headless {
		return nil
	}
	wish, _ := wishOf(observed, agreed)
	var own *export.View
	if i := slices.IndexFunc(contributions, func(c Contribution) bool { return c.View.Cluster == observed.Cluster }); i >= 0 {
		own = contributions[i].View
	}
	return locality.New(wish, observed.Nodes, own)
}

// hintedDistribution is the trafficDistribution of the derived Service of an
// import: some data planes obey hints only where there is one. The oldest of
// its values that mean hints is the one that most of them know.
func hintedDistribution(observed Observed, agreed decision) *string {
	if agreed.spec == nil {
		return nil
	}
	if wish, _ := wishOf(observed, agreed); !wish.Cluster || !observed.Nodes.CanPreferCluster() {
		return nil
	}
	return ptr.To(corev1.ServiceTrafficDistributionPreferClose)
}

// preferCondition is ConditionPreferCluster of an import, nil where it has
// none.
func preferCondition(observed Observed, agreed decision, imported *v1beta1.ServiceImport) *metav1.Condition {
	if agreed.spec == nil || agreed.spec.Type == v1beta1.Headless {
		return nil
	}
	condition := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{Type: ConditionPreferCluster, Status: status, Reason: reason, Message: message, ObservedGeneration: imported.Generation}
	}
	wish, err := wishOf(observed, agreed)
	switch {
	case err != nil:
		return condition(metav1.ConditionFalse, ReasonUnknownPreference, fmt.Sprintf("Exported annotation %s: %v.", export.AnnotationPrefer, err))
	case !wish.Cluster:
		return nil
	case len(observed.Nodes.Zones) == 0:
		return condition(metav1.ConditionFalse, ReasonNoZones,
			"No node of this cluster has the label "+corev1.LabelTopologyZone+", without which no endpoint can be preferred. Label the nodes.")
	case !observed.Nodes.CanPreferCluster():
		return condition(metav1.ConditionFalse, ReasonTooManyZones,
			fmt.Sprintf("The nodes of this cluster are in more than %d zones, the most that an endpoint can be hinted for.", locality.MaxZones))
	case observed.Nodes.SomeWithoutZone:
		return condition(metav1.ConditionTrue, ReasonNodesWithoutZone,
			"Endpoints of this cluster are used first, but not on its nodes without the label "+corev1.LabelTopologyZone+". Label these nodes.")
	}
	return condition(metav1.ConditionTrue, ReasonHinted, "Endpoints of this cluster are used first.")
}

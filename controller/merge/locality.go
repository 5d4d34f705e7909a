// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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

// wishOf is what the clients of an import made of exports wish. The import
// tells it, so that the wish is still there while a Service is replaced and
// nobody exports.
func wishOf(observed Observed, imported *v1beta1.ServiceImport) (locality.Wish, error) {
	return locality.WishOf(ptr.Deref(imported.Spec.TrafficDistribution, ""),
		imported.Annotations[export.AnnotationPrefer], observed.Prefer)
}

// hintsOf are the hints of all slices of an import, nil for none. kube-proxy
// does not see the slices of headless ones.
func hintsOf(observed Observed, imported *v1beta1.ServiceImport, contributions []Contribution) *locality.Hints {
	if imported.Spec.Type == v1beta1.Headless {
		return nil
	}
	wish, _ := wishOf(observed, imported)
	wish.Node = wish.Node && !observed.Unsupported.NodeHints
	var own *export.View
	if i := slices.IndexFunc(contributions, func(
		c Contribution,
	) bool {
		return c.View.Cluster == observed.Cluster
	}); i >= 0 {
		own = contributions[i].View
	}
	return locality.New(wish, observed.Nodes, own)
}

// hintedDistribution is the trafficDistribution of the derived Service of an
// import: some data planes obey hints only where there is one. The oldest of
// its values that mean hints is the one that most of them know.
func hintedDistribution(observed Observed, imported *v1beta1.ServiceImport) *string {
	if wish, _ := wishOf(observed, imported); !wish.Cluster || !observed.Nodes.CanPreferCluster() {
		return nil
	}
	return observed.Unsupported.distribution(corev1.ServiceTrafficDistributionPreferClose)
}

// preferCondition is ConditionPreferCluster of an import, nil where it has
// none.
func preferCondition(observed Observed, agreed decision, imported *v1beta1.ServiceImport) *metav1.Condition {
	if imported.Spec.Type == v1beta1.Headless {
		return nil
	}
	if agreed.spec == nil && meta.FindStatusCondition(imported.Status.Conditions, ConditionPreferCluster) == nil {
		return nil // an older schema of the import may not have kept what was wished
	}
	condition := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{
			Type: ConditionPreferCluster, Status: status, Reason: reason, Message: message,
			ObservedGeneration: imported.Generation,
		}
	}
	wish, err := wishOf(observed, imported)
	switch {
	case err != nil:
		return condition(metav1.ConditionFalse, ReasonUnknownPreference,
			fmt.Sprintf("Exported annotation %s: %v.", export.AnnotationPrefer, err))
	case !wish.Cluster:
		return nil
	case len(observed.Nodes.Zones) == 0:
		return condition(metav1.ConditionFalse, ReasonNoZones,
			"No node of this cluster has the label "+corev1.LabelTopologyZone+
				", without which no endpoint can be preferred. Label the nodes.")
	case !observed.Nodes.CanPreferCluster():
		return condition(metav1.ConditionFalse, ReasonTooManyZones,
			fmt.Sprintf("The nodes of this cluster are in more than %d zones, the most that an endpoint can be hinted for.", locality.MaxZones))
	case observed.Nodes.SomeWithoutZone:
		return condition(metav1.ConditionTrue, ReasonNodesWithoutZone,
			"Endpoints of this cluster are used first, but not on its nodes without the label "+
				corev1.LabelTopologyZone+". Label these nodes.")
	}
	return condition(metav1.ConditionTrue, ReasonHinted, "Endpoints of this cluster are used first.")
}

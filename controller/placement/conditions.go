// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// ConditionPreferCluster is the type of an import's condition that shows in which order clusters are used. Only imports
// with a preference have it.
const ConditionPreferCluster = export.Domain + "/PreferCluster"

// Reasons of ConditionPreferCluster.
const (
	// ReasonHinted (True): hints put the local cluster first.
	ReasonHinted = "Hinted"
	// ReasonDemoted (True): endpoints of clusters in later tiers are demoted.
	ReasonDemoted = "Demoted"
	// ReasonUnknownPreference: the annotation prefer is invalid and has no effect.
	ReasonUnknownPreference = "UnknownPreference"
)

// ConditionAllowedClusters is the type of an import's condition that shows its allowed clusters. Only imports that restrict them
// have it.
const ConditionAllowedClusters = export.Domain + "/AllowedClusters"

// Reasons of ConditionAllowedClusters.
const (
	// ReasonLimited (True): only endpoints of allowed clusters are used.
	ReasonLimited = "Limited"
	// ReasonInvalidAllowedClusters: the annotation allowed-clusters is invalid or empty. Each cluster uses only its local
	// endpoints.
	ReasonInvalidAllowedClusters = "InvalidAllowedClusters"
)

// ConditionWeights is the type of an import's condition that shows whether the requested shares of the traffic are in
// effect. Only imports with weights have it.
const ConditionWeights = export.Domain + "/Weights"

// Reasons of ConditionWeights.
const (
	// ReasonInEffect (True): shares are as requested, as far as whole endpoints allow.
	ReasonInEffect = "InEffect"
	// ReasonOtherShares: clusters have too few ready endpoints, are not in the tier in use, or do not export the service.
	ReasonOtherShares = "OtherShares"
	// ReasonInvalidWeights: the annotation weights is invalid and has no effect.
	ReasonInvalidWeights = "InvalidWeights"
)

// Kinds are the types of all conditions of placements.
var Kinds = []string{ConditionPreferCluster, ConditionAllowedClusters, ConditionWeights}

// Conditions implements merge.Placement.
func (p *placement) Conditions() (all []metav1.Condition) {
	for _, condition := range []*metav1.Condition{p.preferCondition(), p.allowedClustersCondition(), p.weightsCondition()} {
		if condition != nil {
			all = append(all, *condition)
		}
	}
	return all
}

// preferCondition returns the ConditionPreferCluster of the import, nil if it has none.
func (p *placement) preferCondition() *metav1.Condition {
	if len(p.places) == 0 && meta.FindStatusCondition(p.imported.Status.Conditions, ConditionPreferCluster) == nil {
		return nil // an older schema of the import may have dropped the preference
	}
	const kind = ConditionPreferCluster
	switch {
	case p.tiersErr != nil:
		return condition(kind, metav1.ConditionFalse, ReasonUnknownPreference, "Exported annotation %s: %v.",
			export.AnnotationPrefer, p.tiersErr)
	case !p.tiers.Any():
		return nil
	case !p.hinted:
		return condition(kind, metav1.ConditionTrue, ReasonDemoted,
			"Endpoints are used in this order of clusters: %s. Those that wait are not ready.", p.tiers.text)
	}
	return condition(kind, metav1.ConditionTrue, ReasonHinted,
		"Endpoints are used in this order of clusters: %s. Hints put this cluster first.", p.tiers.text)
}

// allowedClustersCondition returns the ConditionAllowedClusters of the import, nil without allowed clusters.
func (p *placement) allowedClustersCondition() *metav1.Condition {
	switch {
	case p.allowed == nil:
		return nil
	case p.allowedErr != nil:
		return condition(ConditionAllowedClusters, metav1.ConditionFalse, ReasonInvalidAllowedClusters,
			"Exported annotation %s: %v. Only endpoints of this cluster are used.", export.AnnotationAllowedClusters, p.allowedErr)
	}
	return condition(ConditionAllowedClusters, metav1.ConditionTrue, ReasonLimited,
		"Only endpoints of these clusters are used: %s.", p.imported.Annotations[export.AnnotationAllowedClusters])
}

// weightsCondition returns the ConditionWeights of the import, nil without weights.
func (p *placement) weightsCondition() *metav1.Condition {
	not := func(reason, format string, args ...any) *metav1.Condition {
		return condition(ConditionWeights, metav1.ConditionFalse, reason, format, args...)
	}
	switch {
	case p.weightsErr != nil:
		return not(ReasonInvalidWeights, "Exported annotation %s: %v.", export.AnnotationWeights, p.weightsErr)
	case p.weights == nil:
		return nil
	case len(p.weighings) == 0:
		return not(ReasonOtherShares, "No endpoint is ready.")
	}
	var families []string
	for _, family := range slices.Sorted(maps.Keys(p.weighings)) {
		if unmet := p.weighings[family].unmet(p.weights, p.places); len(unmet) > 0 {
			families = append(families, string(family)+": "+export.Listed(unmet))
		}
	}
	if len(families) > 0 {
		return not(ReasonOtherShares, "%s.", strings.Join(families, "; "))
	}
	return condition(ConditionWeights, metav1.ConditionTrue, ReasonInEffect,
		"The shares are those asked for, as far as whole endpoints allow: %s.", p.imported.Annotations[export.AnnotationWeights])
}

func condition(kind string, status metav1.ConditionStatus, reason, format string, args ...any) *metav1.Condition {
	return &metav1.Condition{Type: kind, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// unmet returns a text about each share that differs from the requested one by more than whole endpoints explain, sorted
// by cluster. A cluster that is not weighed never has its share. Texts have no numbers of endpoints, so that they stay the same
// while pods are replaced.
func (w weighing) unmet(weights Weights, places map[string]place) []string {
	of := w.used
	if sum(of) == 0 { // nothing is left for the rest, so all are used
		of = w.ready
	}
	total, whole := sum(of), max(sum(weights), 100)
	var unmet []string
	for _, cluster := range slices.Sorted(maps.Keys(weights)) {
		weight := weights[cluster]
		text := fmt.Sprintf("%s asked %d %%, has ", cluster, weight)
		_, exports := places[cluster]
		// Each cluster with a weight, and therefore also the total, may be off by half an endpoint: with 10 % and 90 % of 10
		// endpoints, 0.5 to 1.5 endpoints are right for 10 %. Both numbers are in units of 1/(2*whole) endpoints.
		off, allowed := 2*(of[cluster]*whole-weight*total), whole+max(0, len(weights)-2)*weight
		switch {
		case weight > 0 && !exports: // it may be misspelled
			unmet = append(unmet, text+"none: no exporting cluster has this id")
		case weight > 0 && w.ready[cluster] == 0:
			unmet = append(unmet, text+"none: its endpoints are not ready, not in use, or put first by hints")
		case off < -allowed:
			unmet = append(unmet, text+"less: too few of its endpoints are ready")
		case off > allowed:
			unmet = append(unmet, text+"more: too few endpoints of others are ready")
		}
	}
	return unmet
}

func sum(of map[string]int) (total int) {
	for _, n := range of {
		total += n
	}
	return total
}

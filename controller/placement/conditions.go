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

// Types of the conditions of an import about placement. Only imports that ask for it have them.
const (
	// ConditionPreferCluster shows in which order clusters are used.
	ConditionPreferCluster = export.Domain + "/PreferCluster"
	// ConditionAllowedClusters shows whose endpoints are used.
	ConditionAllowedClusters = export.Domain + "/AllowedClusters"
	// ConditionWeights shows whether the requested shares of the traffic are in effect.
	ConditionWeights = export.Domain + "/Weights"
)

// Reasons of these conditions.
const (
	// ReasonInEffect (True): clients use endpoints as requested, as far as whole endpoints allow.
	ReasonInEffect = "InEffect"
	// ReasonInvalidAnnotation: the annotation is invalid and has no effect. With invalid allowed clusters, each cluster uses only its
	// local endpoints.
	ReasonInvalidAnnotation = "InvalidAnnotation"
	// ReasonOtherShares: clusters have too few ready endpoints for their weights, are not in the tier in use, or do not export the
	// service.
	ReasonOtherShares = "OtherShares"
)

// Kinds are the types of all conditions of placements.
var Kinds = []string{ConditionPreferCluster, ConditionAllowedClusters, ConditionWeights}

// Conditions implements merge.Placement.
func (p *placement) Conditions() (all []metav1.Condition) {
	tell := func(kind, annotation string, err error, unmet, met string) {
		condition := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: ReasonOtherShares, Message: unmet}
		if err != nil {
			condition.Reason, condition.Message = ReasonInvalidAnnotation, fmt.Sprintf("Exported annotation %s: %v.", annotation, err)
		} else if unmet == "" {
			condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, ReasonInEffect, met
		}
		all = append(all, condition)
	}
	// Without an export, an older schema of the import may have dropped the preference.
	known := len(p.places) > 0 || meta.FindStatusCondition(p.imported.Status.Conditions, ConditionPreferCluster) != nil
	if known && (p.tiers.Any() || p.tiersErr != nil) {
		how := "Those that wait are not ready"
		if p.hinted {
			how = "Hints put this cluster first"
		}
		tell(ConditionPreferCluster, export.AnnotationPrefer, p.tiersErr, "",
			fmt.Sprintf("Endpoints are used in this order of clusters: %s. %s.", p.tiers.text, how))
	}
	if p.allowed != nil {
		tell(ConditionAllowedClusters, export.AnnotationAllowedClusters, p.allowedErr, "",
			fmt.Sprintf("Only endpoints of these clusters are used: %s.", p.imported.Annotations[export.AnnotationAllowedClusters]))
	}
	if p.weights != nil || p.weightsErr != nil {
		tell(ConditionWeights, export.AnnotationWeights, p.weightsErr, p.unmet(), fmt.Sprintf(
			"The shares are those asked for, as far as whole endpoints allow: %s.", p.imported.Annotations[export.AnnotationWeights]))
	}
	return all
}

// unmet returns a text about the shares that differ from the requested ones, empty if none does.
func (p *placement) unmet() string {
	if len(p.weighings) == 0 {
		return "No endpoint is ready."
	}
	var families []string
	for _, family := range slices.Sorted(maps.Keys(p.weighings)) {
		if unmet := p.weighings[family].unmet(p.weights); len(unmet) > 0 {
			families = append(families, fmt.Sprintf("%s: other shares than asked for: %s.", family, export.Listed(unmet)))
		}
	}
	return strings.Join(families, " ")
}

// unmet returns each requested share that differs from the share in effect by more than whole endpoints explain, sorted by
// cluster. A cluster that is not weighed never has its share: its id may be misspelled, or hints may put it first. There are no
// numbers of endpoints, so that the texts stay the same while pods are replaced.
func (w weighing) unmet(weights Weights) (unmet []string) {
	of := w.used
	if sum(of) == 0 { // nothing is left for the rest, so all are used
		of = w.ready
	}
	total, whole := sum(of), max(sum(weights), 100)
	for _, cluster := range slices.Sorted(maps.Keys(weights)) {
		weight := weights[cluster]
		// Each cluster with a weight, and therefore also the total, may be off by half an endpoint: with 10 % and 90 % of 10
		// endpoints, 0.5 to 1.5 endpoints are right for 10 %. Both numbers are in units of 1/(2*whole) endpoints.
		off, allowed := 2*(of[cluster]*whole-weight*total), whole+max(0, len(weights)-2)*weight
		if weight > 0 && w.ready[cluster] == 0 || max(off, -off) > allowed {
			unmet = append(unmet, fmt.Sprintf("%s=%d", cluster, weight))
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

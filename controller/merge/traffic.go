// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/traffic"
)

// ConditionWithin is the type of the condition of an import that tells of its border. Only imports that have one have
// the condition.
const ConditionWithin = export.Domain + "/Within"

// Reasons of ConditionWithin.
const (
	// ReasonLimited: endpoints of clusters outside of the border are not used.
	ReasonLimited = "Limited"
	// ReasonInvalidBorder: the annotation export.AnnotationWithin is not valid, and admits the local cluster alone.
	ReasonInvalidBorder = "InvalidBorder"
)

// ConditionWeights is the type of the condition of an import that tells which shares of the traffic are asked for and in
// effect. Only imports with weights have the condition.
const ConditionWeights = export.Domain + "/Weights"

// Reasons of ConditionWeights.
const (
	// ReasonInEffect: the shares are those asked for, to half an endpoint.
	ReasonInEffect = "InEffect"
	// ReasonOtherShares: they are not, because clusters have too few endpoints, or are not of those used first.
	ReasonOtherShares = "OtherShares"
	// ReasonInvalidWeights: the annotation export.AnnotationWeights is not valid and has no effect.
	ReasonInvalidWeights = "InvalidWeights"
)

// ImportConditions are the types of the conditions of an import besides Ready.
var ImportConditions = []string{ConditionPreferCluster, ConditionWithin, ConditionWeights}

// withinCondition returns the ConditionWithin of an import, nil without a border. The plan may be nil.
func withinCondition(imported *v1beta1.ServiceImport, plan *Plan) *metav1.Condition {
	within := imported.Annotations[export.AnnotationWithin]
	border, err := traffic.ParseBorder(within)
	switch {
	case !export.IsManaged(imported) || !border.Any():
		return nil
	case err != nil:
		return &metav1.Condition{
			Type: ConditionWithin, Status: metav1.ConditionFalse, Reason: ReasonInvalidBorder,
			Message: fmt.Sprintf("Exported annotation %s: %v. Only endpoints of this cluster are used.",
				export.AnnotationWithin, err),
		}
	}
	var outside []string
	if plan != nil {
		for _, cluster := range slices.Sorted(maps.Keys(plan.parts)) {
			if plan.parts[cluster].outside {
				outside = append(outside, strconv.Quote(cluster))
			}
		}
	}
	text := "all exporting clusters are inside"
	if len(outside) > 0 {
		text = "not " + listed(outside)
	}
	return &metav1.Condition{
		Type: ConditionWithin, Status: metav1.ConditionTrue, Reason: ReasonLimited,
		Message: fmt.Sprintf("Endpoints of these clusters are used: %s; %s.", within, text),
	}
}

// weightsCondition returns the ConditionWeights of an import, nil without weights. The plan may be nil.
func weightsCondition(imported *v1beta1.ServiceImport, plan *Plan) *metav1.Condition {
	weights, err := traffic.ParseWeights(imported.Annotations[export.AnnotationWeights])
	condition := &metav1.Condition{Type: ConditionWeights, Status: metav1.ConditionFalse}
	switch {
	case !export.IsManaged(imported) || err == nil && weights == nil:
		return nil
	case err != nil:
		condition.Reason = ReasonInvalidWeights
		condition.Message = fmt.Sprintf("Exported annotation %s: %v.", export.AnnotationWeights, err)
		return condition
	case plan == nil || len(plan.cuts.weighings) == 0:
		condition.Reason, condition.Message = ReasonOtherShares, "No endpoint is ready."
		return condition
	}
	condition.Status, condition.Reason = metav1.ConditionTrue, ReasonInEffect
	var families []string
	for _, each := range plan.cuts.weighings {
		text, met := each.describe(weights)
		families = append(families, string(each.addressType)+": "+text)
		if !met {
			condition.Status, condition.Reason = metav1.ConditionFalse, ReasonOtherShares
		}
	}
	condition.Message = strings.Join(families, "; ") + "."
	return condition
}

// describe returns the shares asked for and in effect, and whether they agree to half an endpoint.
func (w weighing) describe(weights traffic.Weights) (text string, met bool) {
	total, asked := 0, 0
	for _, used := range w.used {
		total += used
	}
	all := total == 0 // nothing is left for the rest, so all are used
	if all {
		for _, ready := range w.ready {
			total += ready
		}
	}
	met = true
	var texts []string
	for _, weight := range weights {
		asked += weight
	}
	for _, cluster := range slices.Sorted(maps.Keys(weights)) {
		used := w.used[cluster]
		if all {
			used = w.ready[cluster]
		}
		percent := weights[cluster]
		want := percent * total // in hundredths of an endpoint
		if asked > 100 {
			want = percent * 100 / asked * total
		}
		if off := 100*used - want; off > 50 || off < -50 {
			met = false
		}
		texts = append(texts, fmt.Sprintf("%s asked %d %%, has %.1f %% (%d of %d ready endpoints)", cluster, percent,
			100*float64(used)/float64(total), used, w.ready[cluster]))
	}
	return listed(texts), met
}

// listed joins texts, at most maxClusters of them.
func listed(texts []string) string {
	if more := len(texts) - maxClusters; more > 0 {
		texts = append(slices.Clone(texts[:maxClusters]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}

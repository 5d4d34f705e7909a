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

// ConditionWeights is the type of the condition of an import that tells whether the shares of the traffic that are asked
// for are in effect. Only imports with weights have the condition.
const ConditionWeights = export.Domain + "/Weights"

// Reasons of ConditionWeights.
const (
	// ReasonInEffect: the shares are those asked for, as far as whole endpoints allow.
	ReasonInEffect = "InEffect"
	// ReasonOtherShares: they are not, because clusters have too few endpoints, are not of those used first, or do not
	// export the service.
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
	var families []string
	for _, each := range plan.cuts.weighings {
		if unmet := each.unmet(weights, plan.noShare); len(unmet) > 0 {
			families = append(families, string(each.addressType)+": "+listed(unmet))
		}
	}
	if len(families) > 0 {
		condition.Reason, condition.Message = ReasonOtherShares, strings.Join(families, "; ")+"."
		return condition
	}
	var asked []string
	for _, cluster := range slices.Sorted(maps.Keys(weights)) {
		text := fmt.Sprintf("%s %d %%", cluster, weights[cluster])
		if _, exports := plan.parts[cluster]; !exports {
			text += " (" + notExporting + ")"
		}
		asked = append(asked, text)
	}
	condition.Status, condition.Reason = metav1.ConditionTrue, ReasonInEffect
	condition.Message = "The shares are those asked for, as far as whole endpoints allow: " + listed(asked) + "."
	return condition
}

// notExporting is said of weights for an id that is misspelled, or whose cluster does not export the service yet.
const notExporting = "no exporting cluster has this id"

// noShare returns why a cluster takes no part in the weighing of any family.
func (p *Plan) noShare(cluster string) string {
	part, exports := p.parts[cluster]
	switch {
	case !exports:
		return notExporting
	case part.outside:
		return "it is outside of the border"
	case cluster == p.cuts.hinted:
		return "hints put it before the others"
	}
	return "no endpoint of it is ready and used first"
}

// unmet returns what is wrong with each share that differs from the one asked for by more than whole endpoints explain,
// sorted by cluster. A cluster without a ready endpoint never has the share that it is to have, and why says the reason.
// It has no numbers of endpoints, so that it stays the same while pods are replaced.
func (w weighing) unmet(weights traffic.Weights, why func(cluster string) string) []string {
	of, total := w.used, 0
	for _, used := range of {
		total += used
	}
	if total == 0 { // nothing is left for the rest, so all are used
		of = w.ready
		for _, ready := range of {
			total += ready
		}
	}
	whole := 0 // what the weights are shares of
	for _, weight := range weights {
		whole += weight
	}
	whole = max(whole, 100)
	var unmet []string
	for _, cluster := range slices.Sorted(maps.Keys(weights)) {
		weight := weights[cluster]
		// In units of 1/(2*whole) endpoints. Each of the clusters may be off by half an endpoint, and with it the total.
		off := 2 * (of[cluster]*whole - weight*total)
		most := whole + max(0, len(weights)-2)*weight
		switch {
		case weight > 0 && w.ready[cluster] == 0:
			unmet = append(unmet, fmt.Sprintf("%s asked %d %%, has none: %s", cluster, weight, why(cluster)))
		case off < -most:
			unmet = append(unmet, fmt.Sprintf("%s asked %d %%, has less: too few of its endpoints are ready", cluster, weight))
		case off > most:
			unmet = append(unmet, fmt.Sprintf("%s asked %d %%, has more: too few endpoints of others are ready", cluster,
				weight))
		}
	}
	return unmet
}

// listed joins texts, at most maxClusters of them.
func listed(texts []string) string {
	if more := len(texts) - maxClusters; more > 0 {
		texts = append(slices.Clone(texts[:maxClusters]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}

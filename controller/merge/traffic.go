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

// ImportConditions are the types of the conditions of an import besides Ready.
var ImportConditions = []string{ConditionPreferCluster, ConditionWithin}

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

// listed joins texts, at most maxClusters of them.
func listed(texts []string) string {
	if more := len(texts) - maxClusters; more > 0 {
		texts = append(slices.Clone(texts[:maxClusters]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}

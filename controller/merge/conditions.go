// SPDX-License-Identifier: Apache-2.0

package merge

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// exportConditions returns the conditions of this cluster's ServiceExport, none if it does not exist or if the import
// belongs to another implementation: the two implementations would overwrite each other's conditions forever.
func exportConditions(observed Observed, agreed Decision) []metav1.Condition {
	if observed.ServiceExport == nil || foreign(observed) {
		return nil
	}
	if invalid := observed.Invalid; invalid != nil {
		const see = "The service is not exported: see condition Valid."
		return []metav1.Condition{
			condition(v1beta1.ServiceExportConditionValid, metav1.ConditionFalse, invalid.Reason, shorten(invalid.Message)),
			condition(v1beta1.ServiceExportConditionReady, metav1.ConditionFalse, v1beta1.ServiceExportReasonFailed, see),
			condition(v1beta1.ServiceExportConditionConflict, metav1.ConditionFalse, v1beta1.ServiceExportReasonNoConflicts, see),
		}
	}
	valid := "The Service can be exported."
	if len(observed.Problems) > 0 {
		valid += " " + export.Listed(texts(observed.Problems, export.Problem.String)) + "."
	}
	conditions := []metav1.Condition{
		condition(v1beta1.ServiceExportConditionValid, metav1.ConditionTrue, v1beta1.ServiceExportReasonValid, valid),
		condition(v1beta1.ServiceExportConditionReady, metav1.ConditionTrue, v1beta1.ServiceExportReasonReady, "The service is exported."),
		condition(v1beta1.ServiceExportConditionConflict, metav1.ConditionFalse, v1beta1.ServiceExportReasonNoConflicts,
			"The exports of all clusters agree."),
	}
	if agreed.reason != "" {
		conditions[2] = condition(v1beta1.ServiceExportConditionConflict, metav1.ConditionTrue, agreed.reason, agreed.Conflict)
	}
	return conditions
}

func condition[K, R ~string](kind K, status metav1.ConditionStatus, reason R, message string) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: status, Reason: string(reason), Message: message}
}

// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// exportConditions returns the conditions of this cluster's ServiceExport, none if it does not exist or if the import
// belongs to another implementation: the two implementations would overwrite each other's conditions forever.
func exportConditions(observed Observed, agreed Decision) []metav1.Condition {
	if observed.ServiceExport == nil || foreign(observed) {
		return nil
	}
	var conditions []metav1.Condition
	set := func(kind v1beta1.ServiceExportConditionType, status metav1.ConditionStatus, reason, message string) {
		conditions = append(conditions, metav1.Condition{
			Type: string(kind), Status: status, Reason: reason, Message: message,
		})
	}
	if observed.Invalid == nil {
		set(v1beta1.ServiceExportConditionValid, metav1.ConditionTrue, string(v1beta1.ServiceExportReasonValid),
			validMessage(observed))
		set(v1beta1.ServiceExportConditionReady, metav1.ConditionTrue, string(v1beta1.ServiceExportReasonReady),
			"The service is exported.")
		if agreed.reason == "" {
			set(v1beta1.ServiceExportConditionConflict, metav1.ConditionFalse,
				string(v1beta1.ServiceExportReasonNoConflicts), "The exports of all clusters agree.")
		} else {
			set(v1beta1.ServiceExportConditionConflict, metav1.ConditionTrue, agreed.reason, agreed.Conflict)
		}
		for _, more := range observed.ExportConditions {
			set(v1beta1.ServiceExportConditionType(more.Type), more.Status, more.Reason, shorten(more.Message))
		}
	} else {
		set(v1beta1.ServiceExportConditionValid, metav1.ConditionFalse, observed.Invalid.Reason,
			shorten(observed.Invalid.Message))
		set(v1beta1.ServiceExportConditionReady, metav1.ConditionFalse, string(v1beta1.ServiceExportReasonFailed),
			"The service is not exported: see condition Valid.")
		set(v1beta1.ServiceExportConditionConflict, metav1.ConditionFalse,
			string(v1beta1.ServiceExportReasonNoConflicts), "The service is not exported: see condition Valid.")
	}
	return conditions
}

// maxProblems bounds the problems in a message.
const maxProblems = 10

func validMessage(observed Observed) string {
	message := "The Service can be exported."
	for i, problem := range observed.Problems {
		if i == maxProblems {
			return fmt.Sprintf("%s %d more.", message, len(observed.Problems)-i)
		}
		message += " " + problem.String() + "."
	}
	return message
}

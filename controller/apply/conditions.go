// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// reasonRefused is the reason of an import whose derived Service was refused for a reason that no condition can have.
const reasonRefused = "ServiceRefused"

// maxMessage bounds the message of a condition that quotes the API server, in bytes.
const maxMessage = 1024

// conditionReason is the syntax of a condition's reason in the API.
var conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// refused reports whether the API server rejected a request for good. A retry succeeds only after another change.
func refused(err error) (reason, message string, ok bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "", "", false
	}
	code := int(status.Status().Code)
	if code < http.StatusBadRequest || code >= http.StatusInternalServerError ||
		code == http.StatusConflict || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout ||
		code == http.StatusUnauthorized {
		return "", "", false
	}
	reason = string(status.Status().Reason)
	if !conditionReason.MatchString(reason) {
		reason = reasonRefused
	}
	return reason, truncate("The derived Service was refused: " + status.Status().Message), true
}

// isAbout reports whether the API server refused an object for the value of a field, or of one whose name begins so.
func isAbout(err error, field string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return strings.HasPrefix(cause.Field, field)
	})
}

// withRefusal returns the conditions of an import, with Ready=False and the API server's message if it refused the
// derived Service.
func withRefusal(conditions []metav1.Condition, existing *v1beta1.ServiceImport, serviceErr error) []metav1.Condition {
	reason, message, ok := refused(serviceErr)
	if !ok {
		return conditions
	}
	if ips := existing.Spec.IPs; len(ips) > 0 && isAbout(serviceErr, "spec.clusterIP") { // taken or out of range
		message = truncate(fmt.Sprintf("This import had %s before, which its derived Service cannot get. "+
			"For another IP: kubectl -n %s patch serviceimport %s --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/ips\"}]'. %s",
			strings.Join(ips, ", "), existing.Namespace, existing.Name, message))
	}
	return mergeConditions(conditions, []metav1.Condition{
		notReady(existing.Status.Conditions, existing.Generation, reason, message),
	})
}

// withFailure returns the conditions of an export, with Ready=False if its slices could not be written.
func withFailure(conditions []metav1.Condition, existing *v1beta1.ServiceExport, err error) []metav1.Condition {
	ready := meta.FindStatusCondition(conditions, string(v1beta1.ServiceExportConditionReady))
	if err == nil || ready == nil || ready.Status != metav1.ConditionTrue {
		return conditions
	}
	message := "The endpoints could not be published: " + err.Error()
	return mergeConditions(conditions, []metav1.Condition{
		notReady(existing.Status.Conditions, existing.Generation, string(v1beta1.ServiceExportReasonFailed),
			truncate(message)),
	})
}

func notReady(existing []metav1.Condition, generation int64, reason, message string) metav1.Condition {
	ready := metav1.Condition{
		Type:               string(v1beta1.ServiceImportConditionReady), // the same for exports
		Status:             metav1.ConditionFalse,
		Reason:             reason,
		Message:            message,
		ObservedGeneration: generation,
	}
	if old := meta.FindStatusCondition(existing, ready.Type); old != nil && old.Status == ready.Status {
		ready.LastTransitionTime = old.LastTransitionTime
	}
	return ready
}

func truncate(message string) string {
	if len(message) > maxMessage {
		return strings.ToValidUTF8(message[:maxMessage], "")
	}
	return message
}

// mergeConditions replaces conditions of the same type and keeps the others, which other writers may have added.
func mergeConditions(existing, decided []metav1.Condition) []metav1.Condition {
	result := slices.Clone(existing)
	for _, condition := range decided {
		at := slices.IndexFunc(result, func(each metav1.Condition) bool { return each.Type == condition.Type })
		if at < 0 {
			result = append(result, condition)
		} else {
			result[at] = condition
		}
	}
	return result
}

// date sets missing transition times to now.
func (a *Applier) date(conditions []metav1.Condition) {
	for i := range conditions {
		if conditions[i].LastTransitionTime.IsZero() {
			conditions[i].LastTransitionTime = metav1.NewTime(a.Clock.Now())
		}
	}
}

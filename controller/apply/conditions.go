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

// reasonRefused is the reason of an import whose derived Service was refused
// for a reason that a condition cannot carry.
const reasonRefused = "ServiceRefused"

// maxMessage bounds what a condition tells of a server's words.
const maxMessage = 1024

// conditionReason is the form that the API asks of a condition's reason.
var conditionReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// refused tells whether the API server said no, rather than nothing: trying
// again helps only once something else has changed.
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

// refusesIP reports whether the API server refused a Service because of its
// cluster IPs: another Service has one, or none can have it.
func refusesIP(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		return strings.HasPrefix(cause.Field, "spec.clusterIP")
	})
}

// withRefusal returns the conditions of an import, Ready=False with what the
// server said where it refused the derived Service. The rest is as merged.
func withRefusal(conditions []metav1.Condition, existing *v1beta1.ServiceImport, serviceErr error) []metav1.Condition {
	reason, message, ok := refused(serviceErr)
	if !ok {
		return conditions
	}
	if ips := existing.Spec.IPs; len(ips) > 0 && refusesIP(serviceErr) {
		message = truncate(fmt.Sprintf("This import had %s before, which its derived Service cannot get. "+
			"Delete the Service that has it now, or, for another IP: kubectl -n %s patch serviceimport %s --type=json -p '[{\"op\":\"remove\",\"path\":\"/spec/ips\"}]'. %s",
			strings.Join(ips, ", "), existing.Namespace, existing.Name, message))
	}
	return mergeConditions(conditions, []metav1.Condition{
		notReady(existing.Status.Conditions, existing.Generation, reason, message),
	})
}

// withFailure returns the conditions of an export, Ready=False where the slices
// that publish it could not be written.
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

// mergeConditions replaces conditions by those of the same type and keeps the
// rest: others may put conditions of their own on an object.
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

// date sets the time of those transitions that happen now.
func (a *Applier) date(conditions []metav1.Condition) {
	for i := range conditions {
		if conditions[i].LastTransitionTime.IsZero() {
			conditions[i].LastTransitionTime = metav1.NewTime(a.Clock.Now())
		}
	}
}

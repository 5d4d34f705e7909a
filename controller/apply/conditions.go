// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Reasons of the condition Ready of a ServiceImport.
const (
	// ReasonServiceRefused: the API server rejected the derived Service.
	ReasonServiceRefused = "ServiceRefused"
)

// maxMessage bounds the message of a condition that quotes the API server, in bytes.
const maxMessage = 1024

// refuse sets Ready=False in the decided conditions of an import if the API server rejected the derived Service
// permanently: a retry succeeds only after another change.
func refuse(decided *[]metav1.Condition, serviceErr error) {
	if apierrors.IsInvalid(serviceErr) || apierrors.IsForbidden(serviceErr) || apierrors.IsBadRequest(serviceErr) {
		notReady(decided, ReasonServiceRefused, "The API server refused the "+serviceErr.Error())
	}
}

// fail sets Ready=False in the decided conditions of a ready export if its slices could not be written because of err.
func fail(decided *[]metav1.Condition, err error) {
	if err != nil && meta.IsStatusConditionTrue(*decided, string(v1beta1.ServiceExportConditionReady)) {
		notReady(decided, string(v1beta1.ServiceExportReasonFailed), "The endpoints could not be published: "+err.Error())
	}
}

// notReady sets Ready=False in the conditions of an import or an export, and cuts a long message.
func notReady(decided *[]metav1.Condition, reason, message string) {
	meta.SetStatusCondition(decided, metav1.Condition{
		Type: string(v1beta1.ServiceImportConditionReady), Status: metav1.ConditionFalse, Reason: reason,
		Message: export.Cut(message, maxMessage),
	})
}

// conditions returns the decided conditions of a generation of an object, and those that other writers set. The
// transition time changes only with the status, and has whole seconds, as in the API.
func (a *Applier) conditions(existing, decided []metav1.Condition, generation int64) []metav1.Condition {
	result := slices.DeleteFunc(slices.Clone(existing), func(c metav1.Condition) bool {
		return strings.HasPrefix(c.Type, export.Domain+"/") && meta.FindStatusCondition(decided, c.Type) == nil // of this controller
	})
	now := metav1.NewTime(a.Clock.Now().Truncate(time.Second))
	for _, condition := range decided {
		condition.ObservedGeneration, condition.LastTransitionTime = generation, now
		meta.SetStatusCondition(&result, condition)
	}
	return result
}

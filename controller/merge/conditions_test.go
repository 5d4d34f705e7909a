// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

func TestExportConditions(t *testing.T) {
	type conditions = []metav1.Condition
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
	}
	const see = "The service is not exported: see condition Valid."
	for name, test := range map[string]struct {
		change func(*Observed)
		own    bool
		want   conditions
	}{
		"valid": {nil, true, conditions{
			condition("Valid", yes, "Valid", "The Service can be exported."),
			condition("Ready", yes, "Ready", "The service is exported."),
			condition("Conflict", no, "NoConflicts", agree),
		}},
		"valid with parts left out": {
			func(o *Observed) {
				o.Problems = []export.Problem{
					{
						Reason: export.ReasonReservedKey, Object: "ServiceExport demo/web",
						Message: `label "k8s.io/a" is left out`, Count: 2,
					},
					{
						Reason: export.ReasonBadAddress, Object: "EndpointSlice demo/web-1",
						Message: "::1 is not the address of a pod", Count: 1,
					},
				}
			}, true, conditions{
				condition("Valid", yes, "Valid",
					`The Service can be exported. ServiceExport demo/web: label "k8s.io/a" is left out (2 times). `+
						`EndpointSlice demo/web-1: ::1 is not the address of a pod.`),
				condition("Ready", yes, "Ready", "The service is exported."),
				condition("Conflict", no, "NoConflicts", agree),
			},
		},
		"no Service": {
			func(o *Observed) {
				o.Invalid = &export.Invalid{Reason: "NoService", Message: "Service demo/web does not exist."}
			},
			false,
			conditions{
				condition("Valid", no, "NoService", "Service demo/web does not exist."),
				condition("Ready", no, "Failed", see),
				condition("Conflict", no, "NoConflicts", see),
			},
		},
		"no export": {func(o *Observed) { o.ServiceExport = nil }, false, nil},
		"not looked at": {nil, false, conditions{condition("Ready", unknown, "Pending",
			"The Service was not reconciled yet.")}},
	} {
		t.Run(name, func(t *testing.T) {
			observed := newObserved("east")
			if test.change != nil {
				test.change(&observed)
			}
			contributions := contribute(newView("west", 1, "80/TCP", ""))
			if test.own {
				contributions = append(contributions, contribute(newView("east", 2, "80/TCP", ""))...)
			}
			diff(t, "conditions", Merge(observed, contributions).ExportConditions, test.want)
		})
	}
}

func TestManyProblems(t *testing.T) {
	observed := newObserved("east")
	for range 12 {
		observed.Problems = append(observed.Problems, export.Problem{
			Object: "o", Message: strings.Repeat("x", 256),
			Count: 1,
		})
	}
	message := conditionOf(t, Merge(observed, contribute(newView("east", 1, "80/TCP", ""))).ExportConditions,
		"Valid").Message
	if !strings.HasSuffix(message, ". 2 more.") || len(message) > 3000 {
		t.Errorf("message %s", message)
	}
}

// TestConditionsOfAnotherImplementation: while the import is Cilium's, so are the conditions of the export, which
// Cilium sets on each change of the export. Once the import is taken over they are this controller's.
func TestConditionsOfAnotherImplementation(t *testing.T) {
	theirs := func(conditions []metav1.Condition) bool {
		changed := false
		for _, condition := range []metav1.Condition{
			v1beta1.NewServiceExportCondition(v1beta1.ServiceExportConditionValid, metav1.ConditionTrue,
				v1beta1.ServiceExportReasonValid, "ServiceExport is valid"),
			v1beta1.NewServiceExportCondition(v1beta1.ServiceExportConditionReady, metav1.ConditionTrue,
				v1beta1.ServiceExportReasonReady, "ServiceExport is ready"),
			v1beta1.NewServiceExportCondition(v1beta1.ServiceExportConditionConflict, metav1.ConditionFalse,
				v1beta1.ServiceExportReasonNoConflicts, "ServiceExport has no conflicts"),
		} {
			changed = meta.SetStatusCondition(&conditions, condition) || changed
		}
		return changed
	}
	for name, invalid := range map[string]*export.Invalid{
		"exported":            nil,
		"namespace is denied": {Reason: "NamespaceDenied", Message: "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			observed := newObserved("east")
			observed.ServiceImport = &v1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{
				Namespace: "demo",
				Name:      "web",
			}}
			observed.Invalid = invalid
			var contributions []Contribution
			if invalid == nil {
				contributions = contribute(newView("east", 1, "http:80/TCP", "10.1.0.1"))
			}
			ours := 0
			for range 100 {
				if result := Merge(observed, contributions); result.ExportConditions != nil {
					ours++
					observed.ServiceExport.Status.Conditions = result.ExportConditions
				}
				theirs(observed.ServiceExport.Status.Conditions)
			}
			if ours > 0 {
				t.Errorf("the conditions were written %d times in 100 rounds", ours)
			}
			observed.ServiceImport.Annotations = map[string]string{export.AnnotationAdopt: "true"}
			if adopted := Merge(observed, contributions); (len(adopted.ExportConditions) == 3) != (invalid == nil) {
				t.Errorf("once adopted: conditions %v", adopted.ExportConditions)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/export/exporttest"
)

func status(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
}

// TestRefused: once retries do not help, the condition says why the API server rejects the derived Service.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct {
		err     error
		refused bool
	}{
		"no error":          {nil, false},
		"no answer":         {errors.New("connection refused"), false},
		"not now":           {status(503, ""), false},
		"too many requests": {status(429, ""), false},
		"a race":            {status(409, ""), false},
		"expired":           {status(401, ""), false},
		"a long message":    {fmt.Errorf("derived Service: %w", status(400, strings.Repeat("ö", maxMessage))), true},
	} {
		var decided []metav1.Condition
		if refuse(&decided, test.err); !test.refused && len(decided) == 0 {
			continue
		}
		if !test.refused || decided[0].Status != metav1.ConditionFalse || decided[0].Reason != ReasonServiceRefused ||
			!strings.Contains(decided[0].Message, "refused the derived Service: ö") || len(decided[0].Message) > maxMessage ||
			strings.ContainsRune(decided[0].Message, '\ufffd') {
			t.Errorf("%s: got %v", name, decided)
		}
	}
}

func condition(kind string, is metav1.ConditionStatus, reason string, at int64) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: is, Reason: reason}
	if at > 0 {
		c.LastTransitionTime = metav1.Unix(at, 0)
	}
	return c
}

// TestTransitionTimeMovesWithTheStatusOnly takes an import through a refusal and back. Conditions of other writers stay, and
// those of the controller go once it does not decide them.
func TestTransitionTimeMovesWithTheStatusOnly(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(1000, 7))
	applier := &Applier{Clock: now}
	theirs := condition("example.com/Theirs", "True", "R", 9)
	existing := &v1beta1.ServiceImport{}
	existing.Status.Conditions = []metav1.Condition{theirs, condition(export.Domain+"/AllowedClusters", "True", "R", 9)}
	no := status(403, "quota")
	for _, step := range []struct {
		name   string
		merged metav1.Condition
		err    error
		want   metav1.Condition
	}{
		{"first", condition("Ready", "True", "Ready", 0), nil, condition("Ready", "True", "Ready", 1000)},
		{"refused", condition("Ready", "True", "Ready", 0), no, condition("Ready", "False", ReasonServiceRefused, 1001)},
		{"refused again", condition("Ready", "False", "Pending", 0), no, condition("Ready", "False", ReasonServiceRefused, 1001)},
		{"taken", condition("Ready", "True", "Ready", 0), nil, condition("Ready", "True", "Ready", 1003)},
	} {
		decided := []metav1.Condition{step.merged}
		refuse(&decided, step.err)
		got := applier.conditions(existing.Status.Conditions, decided, 3)
		step.want.ObservedGeneration, step.want.Message = 3, got[1].Message
		exporttest.Diff(t, step.name, got, []metav1.Condition{theirs, step.want})
		existing.Status.Conditions = got
		now.SetTime(now.Now().Add(time.Second))
	}
}

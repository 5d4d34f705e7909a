// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

func TestForemost(t *testing.T) {
	for said, want := range map[string]string{
		"":                                       "",
		"MemberUnreachable":                      "MemberUnreachable",
		"MemberStale":                            "MemberStale",
		"MemberStale MemberUnreachable":          "MemberUnreachable",
		"MemberGone MemberCredentialInvalid":     "MemberCredentialInvalid",
		"MemberQuarantined MemberUnreachable":    "MemberQuarantined",
		"MemberCredentialInvalid MemberStale":    "MemberCredentialInvalid",
		"MemberOverLimit MemberIdentityMismatch": "MemberOverLimit",
	} {
		m := &Member{ID: "west"}
		for reason := range strings.FieldsSeq(said) {
			m.Events = append(m.Events, corev1.Event{Type: corev1.EventTypeWarning, Reason: reason})
		}
		got := ""
		if warning := m.Foremost(); warning != nil {
			got = warning.Reason
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", said, got, want)
		}
	}
}

// TestWarnings tells what holds of what was said, the newest first.
func TestWarnings(t *testing.T) {
	for name, test := range map[string]struct {
		said, holder, want string
	}{
		"nothing":                             {"", "", ""},
		"what was taken back":                 {"MemberReachable MemberUnreachable", "", ""},
		"what came after":                     {"MemberUnreachable MemberReachable", "", "MemberUnreachable"},
		"each is about something else":        {"MemberQuarantined MemberUnreachable MemberRecovered MemberWithinLimits MemberOverLimit", "", "MemberQuarantined MemberUnreachable"},
		"an id that is wrong":                 {"MemberIdentityMismatch", "", "MemberIdentityMismatch"},
		"an id that the cluster has now":      {"MemberIdentityMismatch", "west", ""},
		"an id that the cluster has not":      {"MemberIdentityMismatch", "north", "MemberIdentityMismatch"},
		"what this program does not know yet": {"Unheard Unheard", "", "Unheard Unheard"},
	} {
		m := &Member{ID: "west"}
		if test.holder != "" {
			m.Heartbeat = &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(test.holder)}}
		}
		for reason := range strings.FieldsSeq(test.said) {
			event := corev1.Event{
				Type: corev1.EventTypeWarning, Reason: reason,
				Message: "this cluster calls itself north, the Secret says west: correct it",
			}
			switch reason {
			case memberstate.EventMemberReachable, memberstate.EventMemberRecovered,
				memberstate.EventMemberWithinLimits:
				event.Type = corev1.EventTypeNormal
			}
			m.Events = append(m.Events, event)
		}
		var got []string
		for _, warning := range m.Warnings() {
			got = append(got, warning.Reason)
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s: got %s, want %s", name, text, test.want)
		}
	}
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for heard, want := range map[time.Duration]int{-time.Second: 1, 900 * time.Millisecond: 1, 2 * time.Second: 0} {
		m := &Member{Lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: ptr.To(
			metav1.NewMicroTime(at.Add(heard)))}}}
		m.Events = []corev1.Event{{
			Type: corev1.EventTypeWarning, Reason: memberstate.EventMemberCredentialInvalid,
			LastTimestamp: metav1.NewTime(at),
		}}
		if got := len(m.Warnings()); got != want {
			t.Errorf("heard %s after: got %d warnings, want %d", heard, got, want)
		}
	}
	relabelled := &Member{ID: "south", Events: []corev1.Event{{
		Type:    corev1.EventTypeWarning,
		Reason:  memberstate.EventMemberIdentityMismatch,
		Message: "this cluster calls itself south, the Secret says west: correct it",
	}}}
	if warning := relabelled.Warning(); warning != nil {
		t.Errorf("got %s", warning.Message)
	}
}

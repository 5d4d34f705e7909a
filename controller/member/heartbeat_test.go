// SPDX-License-Identifier: Apache-2.0

package member

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

func TestHeartbeatIsJudgedByArrival(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := clocktesting.NewFakePassiveClock(start)
	h := &heartbeat{clock: now}
	lease := func(version string) *coordinationv1.Lease {
		// The writer's clock is far off, which changes nothing.
		far := metav1.NewMicroTime(start.Add(-24 * time.Hour))
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: version,
				Annotations:     map[string]string{HeartbeatUIDAnnotation: "uid-" + version},
			},
			Spec: coordinationv1.LeaseSpec{RenewTime: &far, HolderIdentity: ptr.To("west")},
		}
	}
	if !h.get().Heard.IsZero() {
		t.Error("heard before anything came")
	}
	for _, step := range []struct {
		name  string
		after time.Duration
		do    func() error
		want  Heartbeat
	}{
		{
			"a list", 1 * time.Second, func() error { return h.Replace([]any{lease("1")}, "1") },
			Heartbeat{Heard: start.Add(1 * time.Second), KubeSystemUID: "uid-1", Cluster: "west"},
		},
		{
			"a renewal", 6 * time.Second, func() error { return h.Update(lease("2")) },
			Heartbeat{Heard: start.Add(6 * time.Second), KubeSystemUID: "uid-2", Cluster: "west"},
		},
		{
			"the same in a list", 9 * time.Second, func() error { return h.Replace([]any{lease("2")}, "3") },
			Heartbeat{Heard: start.Add(6 * time.Second), KubeSystemUID: "uid-2", Cluster: "west"},
		},
		{
			"an empty list", 10 * time.Second, func() error { return h.Replace(nil, "4") },
			Heartbeat{Heard: start.Add(6 * time.Second), KubeSystemUID: "uid-2", Cluster: "west"},
		},
		{
			"a deletion", 11 * time.Second, func() error { return h.Delete(lease("5")) },
			Heartbeat{Heard: start.Add(6 * time.Second), KubeSystemUID: "uid-2", Cluster: "west"},
		},
		{
			"a new Lease", 12 * time.Second, func() error { return h.Add(lease("6")) },
			Heartbeat{Heard: start.Add(12 * time.Second), KubeSystemUID: "uid-6", Cluster: "west"},
		},
	} {
		now.SetTime(start.Add(step.after))
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := h.get(); got != step.want {
			t.Errorf("%s: got %v, want %v", step.name, got, step.want)
		}
	}
}

// TestUIDThatIsNone: it would be a part of a command that an administrator copies.
func TestUIDThatIsNone(t *testing.T) {
	for text, want := range map[string]string{
		"0b1e3a52-6f5e-4a3c-9d7c-4f0c8f5a1c11": "0b1e3a52-6f5e-4a3c-9d7c-4f0c8f5a1c11",
		"x'; rm -rf /; '":                      "",
		"a\nb":                                 "",
		strings.Repeat("a", 65):                "",
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{HeartbeatUIDAnnotation: text}}}
		if got := uidOf(lease); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

// TestCanaries: those of the last renewal count, unless a controller renewed it that does not know them. Long texts are cut.
func TestCanaries(t *testing.T) {
	renewed := time.Unix(1e9, 0)
	h := &heartbeat{clock: clocktesting.NewFakePassiveClock(renewed)}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	for _, step := range []struct {
		what, text, want string
	}{
		{"the first one", "10.1.0.1:8081=a", "10.1.0.1:8081=a"},
		{"another", "10.1.0.2:8081", "10.1.0.2:8081"},
		{"a newer one", "10.1.0.3:8081", "10.1.0.3:8081"},
		{"none", "", ""},
		{"too many", strings.Repeat("x", 5000), strings.Repeat("x", maxCanariesText)},
	} {
		renewed = renewed.Add(HeartbeatInterval)
		lease = lease.DeepCopy()
		lease.ResourceVersion += "1"
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(renewed))
		lease.Annotations = map[string]string{HeartbeatCanariesAnnotation: step.text, scope.PropertiesAnnotation: step.text}
		if err := h.Update(lease); err != nil {
			t.Fatal(err)
		}
		if text := h.get().Canaries; text != step.want {
			t.Errorf("%s: got %.50q, want %.50q", step.what, text, step.want)
		}
		if got := len(h.get().Properties); got != min(len(step.text), scope.MaxBytes+1) {
			t.Errorf("%s: %d bytes of properties", step.what, got)
		}
	}
}

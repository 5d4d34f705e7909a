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
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, Annotations: map[string]string{HeartbeatUIDAnnotation: "uid-" + version}},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &far, HolderIdentity: ptr.To("west")},
		}
	}
	if !h.get().Heard.IsZero() {
		t.Error("heard before anything came")
	}
	for _, step := range []struct {
		after   time.Duration // in seconds
		do      string
		version string // of the Lease, empty for none
		heard   time.Duration
		uid     string
	}{
		{1, "list", "1", 1, "uid-1"},
		{6, "update", "2", 6, "uid-2"},
		{9, "list", "2", 6, "uid-2"},
		{10, "list", "", 6, "uid-2"},
		{11, "delete", "5", 6, "uid-2"},
		{12, "add", "6", 12, "uid-6"},
	} {
		now.SetTime(start.Add(step.after * time.Second))
		var listed []any
		if step.version != "" {
			listed = []any{lease(step.version)}
		}
		err := map[string]func() error{
			"list":   func() error { return h.Replace(listed, "9") },
			"update": func() error { return h.Update(lease(step.version)) },
			"delete": func() error { return h.Delete(lease(step.version)) },
			"add":    func() error { return h.Add(lease(step.version)) },
		}[step.do]()
		if err != nil {
			t.Fatal(err)
		}
		want := Heartbeat{Heard: start.Add(step.heard * time.Second), KubeSystemUID: step.uid, Cluster: "west"}
		if got := h.get(); got != want {
			t.Errorf("%s of %q: got %v, want %v", step.do, step.version, got, want)
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

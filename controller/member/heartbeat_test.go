// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
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

// TestTextsOfAHeartbeat: a UID would be a part of a command that an administrator copies, and long texts are cut.
func TestTextsOfAHeartbeat(t *testing.T) {
	const uid = "0b1e3a52-6f5e-4a3c-9d7c-4f0c8f5a1c11"
	h := &heartbeat{clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))}
	for i, test := range []struct{ text, uid string }{
		{uid, uid}, {"x'; rm -rf /; '", ""}, {"a\nb", ""}, {strings.Repeat("a", 65), ""}, {strings.Repeat("x", 5000), ""}, {"", ""},
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(i), Annotations: map[string]string{
			HeartbeatUIDAnnotation: test.text, HeartbeatCanariesAnnotation: test.text, HeartbeatVersionAnnotation: test.text,
			scope.PropertiesAnnotation: test.text,
		}}}
		if err := h.Update(lease); err != nil {
			t.Fatal(err)
		}
		is, length := h.get(), len(test.text)
		if is.KubeSystemUID != test.uid || len(is.Canaries) != min(length, maxCanariesText) || len(is.Version) != min(length, maxWord) ||
			len(is.Properties) != min(length, scope.MaxBytes+1) || !strings.HasPrefix(test.text, is.Canaries) {
			t.Errorf("%.50q: got %+v", test.text, is)
		}
	}
}

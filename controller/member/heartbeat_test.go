// SPDX-License-Identifier: Apache-2.0

package member

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
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
		name  string
		after time.Duration
		do    func() error
		want  Heartbeat
	}{
		{"a list", 1 * time.Second, func() error { return h.Replace([]any{lease("1")}, "1") }, Heartbeat{start.Add(1 * time.Second), "uid-1", "west"}},
		{"a renewal", 6 * time.Second, func() error { return h.Update(lease("2")) }, Heartbeat{start.Add(6 * time.Second), "uid-2", "west"}},
		{"the same in a list", 9 * time.Second, func() error { return h.Replace([]any{lease("2")}, "3") }, Heartbeat{start.Add(6 * time.Second), "uid-2", "west"}},
		{"an empty list", 10 * time.Second, func() error { return h.Replace(nil, "4") }, Heartbeat{start.Add(6 * time.Second), "uid-2", "west"}},
		{"a deletion", 11 * time.Second, func() error { return h.Delete(lease("5")) }, Heartbeat{start.Add(6 * time.Second), "uid-2", "west"}},
		{"a new Lease", 12 * time.Second, func() error { return h.Add(lease("6")) }, Heartbeat{start.Add(12 * time.Second), "uid-6", "west"}},
	} {
		now.SetTime(start.Add(step.after))
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := h.get(); got != step.want {
			t.Errorf("%s: got %v, want %v", step.name, got, step.want)
		}
	}
	if err := h.Add("no Lease"); err == nil {
		t.Error("took what is no Lease")
	}
}

// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/properties"
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
			Heartbeat{start.Add(1 * time.Second), "uid-1", "west", false, ""},
		},
		{
			"a renewal", 6 * time.Second, func() error { return h.Update(lease("2")) },
			Heartbeat{start.Add(6 * time.Second), "uid-2", "west", false, ""},
		},
		{
			"the same in a list", 9 * time.Second, func() error { return h.Replace([]any{lease("2")}, "3") },
			Heartbeat{start.Add(6 * time.Second), "uid-2", "west", false, ""},
		},
		{
			"an empty list", 10 * time.Second, func() error { return h.Replace(nil, "4") },
			Heartbeat{start.Add(6 * time.Second), "uid-2", "west", false, ""},
		},
		{
			"a deletion", 11 * time.Second, func() error { return h.Delete(lease("5")) },
			Heartbeat{start.Add(6 * time.Second), "uid-2", "west", false, ""},
		},
		{
			"a new Lease", 12 * time.Second, func() error { return h.Add(lease("6")) },
			Heartbeat{start.Add(12 * time.Second), "uid-6", "west", false, ""},
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
	if err := h.Add("no Lease"); err == nil {
		t.Error("took what is no Lease")
	}
}

// TestSilenceIsAProblem: a member that hangs fails no request, and is told of
// all the same, once, and again when it is heard.
func TestSilenceIsAProblem(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	told := make(chan error, 10)
	m := newMember("west", now, func(types.NamespacedName) {}, func() {}, func(err error) { told <- err })
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.listen(ctx)
	}()
	defer func() {
		stop()
		<-done
	}()
	version := 0
	hear := func() {
		version++
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version)}}
		if err := m.heartbeat.Update(lease); err != nil {
			t.Fatal(err)
		}
	}
	// pass waits for the timer that is due next.
	pass := func(d time.Duration) {
		for !now.HasWaiters() {
			runtime.Gosched()
		}
		now.Step(d)
	}
	next := func() error {
		select {
		case err := <-told:
			return err
		case <-time.After(time.Minute):
			t.Fatal("nothing was told")
			return nil
		}
	}
	m.note(watchedSlices, nil)
	m.note(watchedHeartbeat, nil)
	hear()
	for range 10 {
		pass(HeartbeatInterval)
		hear()
	}
	if len(m.heartbeat.arrived) > 0 {
		t.Error("a heartbeat that nobody waits for wakes somebody")
	}
	if err := m.Problem(); err != nil || len(told) > 0 {
		t.Fatalf("a member that is heard has the problem %v", err)
	}
	pass(reportAfter)
	if err := next(); err == nil || !strings.Contains(err.Error(), "no heartbeat of cluster west for 15s") {
		t.Errorf("told %v", err)
	}
	m.note(watchedSlices, nil) // a request that goes well proves nothing
	if m.Problem() == nil || len(told) > 0 {
		t.Error("the silence is forgotten")
	}
	hear()
	if err := next(); err != nil || m.Problem() != nil {
		t.Errorf("heard again: told %v, the problem is %v", err, m.Problem())
	}
}

// descriptions receives what a heartbeat says.
type descriptions struct {
	leaseFunc
	read []string
}

func (d *descriptions) described(is Description) { d.read = append(d.read, is.Properties) }

// TestDescriptionIsReadOnce: a heartbeat that says the same as before costs nothing.
func TestDescriptionIsReadOnce(t *testing.T) {
	d := &descriptions{leaseFunc: func(string) {}}
	h := &heartbeat{clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)), handler: d}
	long := strings.Repeat("x", 2*properties.MaxBytes)
	for i, step := range []struct {
		text, want string // - for no news
	}{
		{"", ""},
		{"a", "a"},
		{"a", "-"},
		{"", ""},
		{"{}", "{}"},
		{long, long[:properties.MaxBytes+1]},
		{long, "-"},
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(i), Annotations: map[string]string{properties.Annotation: step.text},
		}}
		d.read = nil
		if err := h.Update(lease); err != nil {
			t.Fatal(err)
		}
		want := []string{step.want}
		if step.want == "-" {
			want = nil
		}
		if !slices.Equal(d.read, want) {
			t.Errorf("step %d: read %.100q, want %.100q", i, d.read, want)
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

// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"syscall"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// leases answers lists of the heartbeat.
type leases struct {
	version, uid string
	err          error
}

func (l leases) List(context.Context, metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: l.version}}
	if l.uid != "" {
		list.Items = []coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "50", Annotations: map[string]string{HeartbeatUIDAnnotation: l.uid},
		}}}
	}
	return list, l.err
}

func (leases) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// TestUnchanged decides whether a watch that ended at resourceVersion 200 is opened again.
func TestUnchanged(t *testing.T) {
	for name, test := range map[string]struct {
		listed string // - if the list may be incomplete
		now    leases
		want   error
	}{
		"nothing happened":                         {"a", leases{"200", "a", nil}, nil},
		"the first heartbeat came after the list":  {"", leases{"200", "a", nil}, nil},
		"etcd was restored":                        {"a", leases{"199", "a", nil}, errRestored},
		"etcd is another cluster's":                {"a", leases{"300", "b", nil}, errRestored},
		"the heartbeat was deleted":                {"a", leases{"300", "", nil}, errRestored},
		"resourceVersions are not numbers anymore": {"a", leases{"x", "a", nil}, errRestored},
		"the heartbeat cannot be read":             {"a", leases{err: syscall.ECONNREFUSED}, errRestored},
		"the list was incomplete":                  {"-", leases{"200", "a", nil}, errRestored},
	} {
		m := unheard()
		if test.listed != "-" {
			m.listed.Store(&test.listed)
		}
		if err := m.unchanged(t.Context(), test.now, "200"); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
		if listed := m.listed.Load(); test.want == nil && *listed != "a" {
			t.Errorf("%s: the cluster is %q", name, *listed)
		}
	}
}

// TestExpiredWatches: no watch is opened if another list is to follow, and one that is being opened then ends at once.
// TestResumedWatches has the others.
func TestExpiredWatches(t *testing.T) {
	opened := func() {}
	lw := selected(leases{}, heartbeatOnly, func(context.Context) (string, error) { return "1", nil }, nil, func(error) { opened() })
	lw.expire()
	if _, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, errExpired) {
		t.Errorf("the watch is opened without a list: %v", err)
	}
	if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	opened = lw.expire
	w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{})
	if fake, ok := w.(*watch.FakeWatcher); err != nil || !ok || !fake.IsStopped() {
		t.Errorf("the watch goes on: %v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

var (
	web  = types.NamespacedName{Namespace: "demo", Name: "web"}
	db   = types.NamespacedName{Namespace: "demo", Name: "db"}
	none = map[types.NamespacedName]struct{}{}

	errRefused = errors.New("refused")
)

// A term is a record whose surroundings are played.
type term struct {
	*Record
	now *clocktesting.FakeClock
	*faults
}

// faults are those of the surroundings of a record.
type faults struct {
	behind string
	probe  error
	probed int
}

func (f *faults) Late(time.Duration) string { return f.behind }

func (f *faults) Probe(context.Context) error {
	f.probed++
	return f.probe
}

func newTerm(expected map[types.NamespacedName]struct{}) *term {
	t := &term{now: clocktesting.NewFakeClock(time.Unix(1e9, 0)), faults: &faults{}}
	t.Record = NewRecord(RecordConfig{Clock: t.now, After: 30 * time.Second, Inputs: t.faults, Prober: t.faults},
		expected)
	return t
}

func (m *term) expect(t *testing.T, want Reason, probed int) {
	t.Helper()
	reason, message := m.Doubt(t.Context())
	if reason != want || (message == "") != (want == None) || m.Reason() != want {
		t.Errorf("got %q %q, want %q", reason, message, want)
	}
	if m.probed != probed {
		t.Errorf("probed %d times, want %d", m.probed, probed)
	}
	m.probed = 0
}

func TestNothingIsVouchedForBeforeItIsSeen(t *testing.T) {
	seen := func(m *term) bool {
		select {
		case <-m.Seen():
			return true
		default:
			return false
		}
	}
	if m := newTerm(none); !seen(m) {
		t.Error("a cluster that exports nothing waits")
	}
	m := newTerm(map[types.NamespacedName]struct{}{web: {}, db: {}})
	m.Reconciled(web, nil)
	m.Reconciled(web, nil)
	m.Reconciled(types.NamespacedName{Name: "other"}, nil)
	if seen(m) {
		t.Error("one export was not reconciled, and the slices count as seen")
	}
	m.Reconciled(db, errRefused) // it is late from now on
	if !seen(m) {
		t.Error("all exports were reconciled, and the slices count as unseen")
	}
	m.Reconciled(db, nil)
}

func TestInputsThatAreNotRead(t *testing.T) {
	m := newTerm(none)
	m.behind = "EndpointSlices"
	m.expect(t, InputsLate, 0)
	m.behind = ""
	m.expect(t, None, 0)
}

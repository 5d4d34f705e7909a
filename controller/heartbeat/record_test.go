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

// pass reconciles a service.
func (m *term) pass(service types.NamespacedName, err error) {
	m.Begins()
	m.Ends(service, err)
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
	m.pass(web, nil)
	m.pass(web, nil)
	m.pass(types.NamespacedName{Name: "other"}, nil)
	if seen(m) {
		t.Error("one export was not reconciled, and the slices count as seen")
	}
	m.pass(db, errRefused) // it is late from now on
	if !seen(m) {
		t.Error("all exports were reconciled, and the slices count as unseen")
	}
	m.pass(db, nil)
}

func TestInputsThatAreNotRead(t *testing.T) {
	m := newTerm(none)
	m.behind = "EndpointSlices"
	m.expect(t, InputsLate, 0)
	m.behind = ""
	m.expect(t, None, 0)
}

func TestWorkersThatHang(t *testing.T) {
	m := newTerm(none)
	m.pass(web, nil)
	m.now.Step(time.Hour) // at rest
	m.expect(t, None, 0)
	m.Begins()
	m.now.Step(29 * time.Second)
	m.Begins()
	m.expect(t, None, 0)
	m.now.Step(time.Second)
	m.expect(t, WorkersStuck, 0)
	m.Ends(db, nil) // one hangs, the others go on
	m.expect(t, None, 0)
	m.now.Step(29 * time.Second)
	m.pass(db, nil)
	m.now.Step(29 * time.Second)
	m.expect(t, None, 0)
	m.now.Step(time.Second)
	m.expect(t, WorkersStuck, 0)
	m.Ends(web, nil)
	m.now.Step(time.Hour)
	m.expect(t, None, 0)
}

func TestStuck(t *testing.T) {
	const after = 5 * time.Minute
	for name, test := range map[string]struct {
		do   func(*term)
		want string
	}{
		"nothing happened yet": {func(*term) {}, ""},
		"at rest":              {func(m *term) { m.pass(web, nil) }, ""},
		"a worker": {
			func(m *term) { m.Begins() },
			"no service was reconciled for 5m0s although some are due",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newTerm(none)
			m.now.Step(time.Hour)
			test.do(m)
			m.now.Step(after - 1)
			if got := m.Stuck(after); got != "" {
				t.Errorf("too early: %s", got)
			}
			m.now.Step(1)
			if got := m.Stuck(after); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

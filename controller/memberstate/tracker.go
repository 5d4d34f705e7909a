// SPDX-License-Identifier: Apache-2.0

// Package memberstate tracks the state of the member clusters: it collects what is read of them, has liveness judge it,
// shows the result in Leases and Events, and hands it to the next leader (docs/design/liveness.md).
package memberstate

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// Annotations on a member's Secret with which an administrator overrides the liveness judgement.
const (
	// AnnotationDrain demotes the endpoints of the cluster if its value is "true".
	AnnotationDrain = "clusterset-dns.github.io/drain"
	// AnnotationConfirm accepts the data of a quarantined member. Its value is the token in the Event.
	AnnotationConfirm = "clusterset-dns.github.io/confirm"
)

// Exports are the exports of members as far as the local cluster has them.
type Exports interface {
	// ServicesFrom returns the services that a cluster exported last, in a new map.
	ServicesFrom(cluster string) map[types.NamespacedName]struct{}
}

// A Handler is called without the lock of the Tracker.
type Handler interface {
	// VerdictChanged requests that all services of a cluster are reconciled.
	VerdictChanged(cluster string)
}

// A Tracker keeps a judgement of all members. The judgement is updated before a method that reports news returns, and
// when time changes it. It is safe for concurrent use.
type Tracker struct {
	limits   liveness.Limits
	clock    clock.WithTicker
	exports  Exports
	reporter *Reporter
	handler  Handler
	// left is what the previous leader left, by cluster.
	left map[string]state

	mu        sync.Mutex
	members   map[string]*tracked
	judgement liveness.Judgement
	changed   chan struct{} // resets the timer
	shown     chan struct{} // updates the Leases
}

// tracked is the facts of one member.
type tracked struct {
	liveness.Member
	source *member.Member
}

// A state is what one leader leaves to the next about a member.
type state struct {
	state liveness.State
	uid   string
}

var _ member.Tracker = (*Tracker)(nil)

// NewTracker returns a tracker without members.
func NewTracker(limits liveness.Limits, now clock.WithTicker, exports Exports, reporter *Reporter) *Tracker {
	return &Tracker{
		limits: limits, clock: now, exports: exports, reporter: reporter,
		members: map[string]*tracked{},
		changed: make(chan struct{}, 1),
		shown:   make(chan struct{}, 1),
	}
}

// Handle sets the handler. It is to be called before Run, and before anything is read of members.
func (t *Tracker) Handle(handler Handler) { t.handler = handler }

// Verdict returns the verdict on a member.
func (t *Tracker) Verdict(cluster string) liveness.Verdict { return t.Judgement().Of(cluster) }

// Judgement returns the verdicts on all members.
func (t *Tracker) Judgement() liveness.Judgement {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.judgement
}

// Track implements member.Tracker.
func (t *Tracker) Track(m *member.Member) {
	t.update(func() {
		if known := t.members[m.Cluster()]; known != nil {
			known.source = m
			return
		}
		left := t.left[m.Cluster()]
		delete(t.left, m.Cluster()) // a member that leaves and joins again is new
		t.members[m.Cluster()] = &tracked{source: m, Member: liveness.Member{
			Cluster:  m.Cluster(),
			Arrivals: liveness.Arrivals{Joined: t.clock.Now()},
			Before:   left.state,
			KnownUID: left.uid,
		}}
	})
}

// Untrack implements member.Tracker.
func (t *Tracker) Untrack(cluster string) {
	t.update(func() { delete(t.members, cluster) })
}

// LeaseRead implements member.Tracker.
func (t *Tracker) LeaseRead(cluster, uid string, at time.Time, renewed, mistaken bool) {
	t.update(func() {
		m := t.members[cluster]
		if m == nil {
			return
		}
		if renewed {
			m.Arrivals = m.Arrivals.Heard(at, uid, t.limits)
		} else {
			m.Arrivals = m.Arrivals.Seen(at, uid)
		}
		if m.Mistaken && !mistaken {
			// The cluster publishes its exports under the corrected id between this heartbeat and the next
			// (heartbeat.Renewer), so its slices count from the next heartbeat on.
			m.Shrunk = at
		}
		m.Mistaken = mistaken
		if m.KnownUID == "" && !mistaken {
			m.KnownUID = m.Arrivals.UID
		}
		if m.Lost.IsZero() {
			return
		}
		if before, lacking := t.compare(cluster, m.source.Services()); !liveness.LostMost(before, before-lacking) {
			m.Lost = time.Time{}
		}
	})
}

// Listed implements member.Tracker.
func (t *Tracker) Listed(cluster string, services []types.NamespacedName) {
	t.update(func() {
		m := t.members[cluster]
		if m == nil {
			return
		}
		before, lacking := t.compare(cluster, services)
		m.Shrunk = time.Time{}
		if lacking > 0 {
			m.Shrunk = t.clock.Now()
		}
		switch {
		case !liveness.LostMost(before, before-lacking):
			m.Lost = time.Time{}
		case m.Lost.IsZero():
			m.Lost = m.Shrunk
		}
	})
}

// compare returns how many services a member exported last, and how many of them are not among services.
func (t *Tracker) compare(cluster string, services []types.NamespacedName) (before, lacking int) {
	known := t.exports.ServicesFrom(cluster)
	before = len(known)
	for _, service := range services {
		delete(known, service)
	}
	return before, len(known)
}

// update changes facts, judges them, and notifies the handler and the reporter.
func (t *Tracker) update(change func()) {
	t.mu.Lock()
	change()
	before := t.judgement
	facts := make([]liveness.Member, 0, len(t.members))
	for _, m := range t.members {
		annotations := m.source.Annotations()
		m.Drained = annotations[AnnotationDrain] == "true"
		m.Confirmed = annotations[AnnotationConfirm]
		facts = append(facts, m.Member)
	}
	after := liveness.Judge(t.clock.Now(), t.limits, facts)
	t.judgement = after
	for _, m := range t.members {
		if after.Of(m.Cluster).Token != "" || m.Mistaken {
			continue // quarantined
		}
		// Data that was heard long enough, or confirmed, is accepted for good.
		m.Lost = time.Time{}
		if m.Arrivals.UID != "" {
			m.KnownUID = m.Arrivals.UID
		}
	}
	t.mu.Unlock()

	for _, is := range after.Members {
		was := before.Of(is.Cluster)
		if was.Demote != is.Demote || was.Keep != is.Keep ||
			(was.State == liveness.Gone) != (is.State == liveness.Gone) {
			t.handler.VerdictChanged(is.Cluster)
		}
	}
	t.reporter.judged(before, after, t.source)
	trigger(t.changed)
	trigger(t.shown)
}

// source returns a member, or nil if it left.
func (t *Tracker) source(cluster string) *member.Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.members[cluster]; m != nil {
		return m.source
	}
	return nil
}

// trigger does a non-blocking send; a signal already pending covers this change.
func trigger(channel chan<- struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// Run judges again whenever time changes the judgement, until the context ends.
func (t *Tracker) Run(ctx context.Context) {
	for {
		var timer clock.Timer
		var due <-chan time.Time
		if next := t.Judgement().Next; !next.IsZero() {
			timer = t.clock.NewTimer(next.Sub(t.clock.Now()))
			due = timer.C()
		}
		select {
		case <-ctx.Done():
		case <-t.changed:
		case <-due:
			t.update(func() {})
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

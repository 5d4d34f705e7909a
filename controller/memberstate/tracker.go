// SPDX-License-Identifier: Apache-2.0

// Package memberstate tracks the state of the member clusters: it collects what is read of them, has liveness judge it,
// shows the result in Leases and Events, and hands it to the next leader (docs/design/liveness.md).
package memberstate

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// Annotations on a member's Secret with which an administrator overrides the liveness judgement.
const (
	// AnnotationDrain demotes the endpoints of the cluster if its value is "true".
	AnnotationDrain = member.DrainAnnotation
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
	// DescriptionChanged requests the same because of Properties and Policy, also for the exports of the local cluster.
	// Of a member it is called once a minute, after the first time.
	DescriptionChanged(change Redescription)
}

// A Tracker keeps a judgement of all members. The judgement of a member is updated before a method that reports news of
// it returns, and that of all once a second. It is safe for concurrent use.
type Tracker struct {
	limits   liveness.Limits
	clock    clock.WithTicker
	exports  Exports
	reporter *Reporter
	handler  Handler
	// left is what the previous leader left, by cluster.
	left map[string]state
	// before are the members of sources that the previous leader left.
	before []*member.Candidate

	mu      sync.Mutex
	members map[string]*tracked
	// ticked is when tick last ran, and isolated whether none of several members was heard then.
	ticked   time.Time
	isolated bool
	paths    *liveness.Paths
	// canaries are those of each member, by their names.
	canaries map[string]map[string]canary.Canary
	// unshown are the members whose Leases do not show their state.
	unshown map[string]struct{}
	// redescribed are the members whose description changed; judge notifies the handler.
	redescribed []Redescription
	set         ClusterSet // of the local cluster
	// limiting is set if the Policy of a member may refuse something.
	limiting atomic.Bool
	shown    chan struct{} // updates the Leases
}

// tracked is the facts of one member.
type tracked struct {
	liveness.Member
	source  *member.Member
	verdict liveness.Verdict
	// since is when the member was judged to be in its state first, by this leader.
	since time.Time
	// drains is set if the member asks in its heartbeat to be drained.
	drains bool
	// shownUID is the KnownUID in the Lease, or to be shown there.
	shownUID string
	description
}

// A state is what one leader leaves to the next about a member.
type state struct {
	state       liveness.State
	uid         string
	path        liveness.Path
	drains      bool
	description member.Description
}

var _ member.Tracker = (*Tracker)(nil)

// NewTracker returns a tracker without members.
func NewTracker(limits liveness.Limits, now clock.WithTicker, exports Exports, reporter *Reporter) *Tracker {
	return &Tracker{
		limits: limits, clock: now, exports: exports, reporter: reporter,
		members:  map[string]*tracked{},
		ticked:   now.Now(),
		paths:    liveness.NewPaths(limits),
		canaries: map[string]map[string]canary.Canary{},
		unshown:  map[string]struct{}{},
		shown:    make(chan struct{}, 1),
	}
}

// Handle sets the handler. It is to be called before Run, and before anything is read of members.
func (t *Tracker) Handle(handler Handler) { t.handler = handler }

// Verdict returns the verdict on a member.
func (t *Tracker) Verdict(cluster string) liveness.Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.verdict(cluster)
}

// verdict returns the verdict on a member. The caller holds the lock.
func (t *Tracker) verdict(cluster string) liveness.Verdict {
	if m := t.members[cluster]; m != nil {
		return m.verdict
	}
	return liveness.Unknown(cluster)
}

// Since returns when a member was judged to be in its state first, by this leader; zero if it is unknown.
func (t *Tracker) Since(cluster string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.members[cluster]; m != nil {
		return m.since
	}
	return time.Time{}
}

// Judgement returns the verdicts on all members. It costs in proportion to their number.
func (t *Tracker) Judgement() liveness.Judgement {
	t.mu.Lock()
	defer t.mu.Unlock()
	judgement := liveness.Judgement{Isolated: t.isolated}
	for _, m := range t.members {
		judgement.Members = append(judgement.Members, m.verdict)
	}
	slices.SortFunc(judgement.Members, func(a, b liveness.Verdict) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return judgement
}

// Before implements member.Tracker.
func (t *Tracker) Before() []*member.Candidate { return t.before }

// Track implements member.Tracker.
func (t *Tracker) Track(m *member.Member) {
	t.judge(func(now time.Time) []liveness.Change {
		known := t.members[m.Cluster()]
		if known == nil {
			left := t.left[m.Cluster()]
			if left.description != (member.Description{}) {
				left.description.ClusterSet = string(t.set.Name) // it was accepted
			}
			delete(t.left, m.Cluster()) // a member that leaves and joins again is new
			known = &tracked{since: now, verdict: liveness.Unknown(m.Cluster()), drains: left.drains, shownUID: left.uid, description: describe(left.description), Member: liveness.Member{
				Cluster:  m.Cluster(),
				Arrivals: liveness.Arrivals{Joined: now},
				Before:   left.state,
				KnownUID: left.uid,
			}}
			t.members[m.Cluster()] = known
			t.paths.Restore(m.Cluster(), left.path)
			t.notePolicy(known)
			t.unshown[m.Cluster()] = struct{}{}
		}
		known.source = m
		return t.put(now, known)
	})
}

// Untrack implements member.Tracker.
func (t *Tracker) Untrack(cluster string) {
	t.judge(func(time.Time) []liveness.Change {
		delete(t.members, cluster)
		delete(t.canaries, cluster)
		t.paths.Remove(cluster)
		t.unshown[cluster] = struct{}{}
		return nil
	})
}

// LeaseRead implements member.Tracker.
func (t *Tracker) LeaseRead(cluster, uid string, at time.Time, renewed, mistaken bool) {
	t.update(cluster, func(m *tracked) {
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
	t.update(cluster, func(m *tracked) {
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

// update changes the facts of a member and judges it. It does nothing for a cluster that is no member.
func (t *Tracker) update(cluster string, change func(*tracked)) {
	t.judge(func(now time.Time) []liveness.Change {
		m := t.members[cluster]
		if m == nil {
			return nil
		}
		change(m)
		return t.put(now, m)
	})
}

// put judges the facts of a member. The caller holds the lock.
func (t *Tracker) put(now time.Time, m *tracked) []liveness.Change {
	annotations := m.source.Annotations()
	if heard := m.source.Heartbeat(); !heard.Heard.IsZero() && heard.Drained != m.drains {
		m.drains = heard.Drained
		t.unshown[m.Cluster] = struct{}{}
	}
	m.Drained = m.drains || annotations[AnnotationDrain] == "true"
	m.Confirmed = annotations[AnnotationConfirm]
	m.hear(now)
	if path := t.paths.Of(m.Cluster); m.Path != path {
		m.Path = path
		t.unshown[m.Cluster] = struct{}{}
	}
	m.OtherSet = t.set.excludes(m.set, m.said)
	was := m.verdict
	m.verdict = liveness.Judge(now, t.limits, m.Member)
	if m.verdict.Token == "" && !m.Mistaken && !m.OtherSet {
		// Not quarantined: data that was heard long enough, or confirmed, is accepted for good. That changes no verdict.
		m.Lost = time.Time{}
		m.KnownUID = cmp.Or(m.Arrivals.UID, m.KnownUID)
		t.accept(m)
	}
	if m.shownUID != m.KnownUID {
		m.shownUID = m.KnownUID
		t.unshown[m.Cluster] = struct{}{}
	}
	if m.verdict == was {
		return nil
	}
	return []liveness.Change{{Was: was, Is: m.verdict}}
}

// judge calls change with the lock, and notifies the handler and the reporter of what it returns.
func (t *Tracker) judge(change func(now time.Time) []liveness.Change) {
	t.mu.Lock()
	was := t.isolated
	now := t.clock.Now()
	changes := change(now)
	is := t.isolated
	for _, change := range changes {
		if change.Was.State != change.Is.State {
			t.unshown[change.Is.Cluster] = struct{}{}
			if m := t.members[change.Is.Cluster]; m != nil {
				m.since = now
			}
		}
	}
	if len(t.unshown) > 0 {
		trigger(t.shown)
	}
	redescribed := t.redescribed
	t.redescribed = nil
	t.mu.Unlock()

	for _, change := range redescribed {
		t.handler.DescriptionChanged(change)
	}
	for _, change := range changes {
		was, is := change.Was, change.Is
		if was.Demote != is.Demote || was.Keep != is.Keep ||
			(was.State == liveness.Gone) != (is.State == liveness.Gone) {
			t.handler.VerdictChanged(is.Cluster)
		}
	}
	t.reporter.judged(was, is, changes, t.source)
}

// tick judges what time alone changed.
func (t *Tracker) tick() {
	t.judge(func(now time.Time) (changes []liveness.Change) {
		t.isolated = liveness.Tick(now, now.Sub(t.ticked), t.limits, func(yield func(*liveness.Arrivals) bool) {
			for _, m := range t.members {
				if !yield(&m.Arrivals) {
					return
				}
			}
		})
		t.ticked = now
		for _, m := range t.members {
			changes = append(changes, t.put(now, m)...)
		}
		return changes
	})
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

// Run judges all members again each second, until the context ends.
func (t *Tracker) Run(ctx context.Context) {
	ticker := t.clock.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			t.tick()
		}
	}
}

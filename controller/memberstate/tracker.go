// SPDX-License-Identifier: Apache-2.0

// Package memberstate tracks the state of the member clusters: it collects facts about them, lets liveness judge them, and
// records the result in Events and, for the next leader, in Leases (docs/design.md).
package memberstate

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	documents "github.com/clusterset-dns/clusterset-dns/controller/state"
)

// Annotations on a member's Secret with which an administrator overrides the liveness judgement.
const (
	// AnnotationDrain on the Secret of a member: "true" demotes the member's endpoints. On the controller's namespace: the
	// local cluster's.
	AnnotationDrain = member.DrainAnnotation
	// AnnotationConfirm on the Secret of a member: accepts its new data while it is quarantined. The Event MemberQuarantined
	// names the value.
	AnnotationConfirm = "clusterset-dns.github.io/confirm"
)

// A Tracker keeps a Verdict on each member. A method that reports a fact about a member updates its Verdict before it returns,
// and Run updates all of them once a second. It is safe for concurrent use.
//
// It writes one Lease for each member, with its state and the facts that the next leader needs. The renewTime is when the first
// heartbeat arrived with the current credential, for `kubectl clusterset join`; until then, with an earlier credential.
type Tracker struct {
	// DecodeTargets returns the probe targets in a text that are in the ranges of a member. Set it before there are members, if
	// their probe targets are probed. Without it, paths that the previous leader recorded are ignored: nothing would correct
	// them.
	DecodeTargets func(text string, ranges []netip.Prefix) ([]netip.AddrPort, error)

	limits   liveness.Limits
	clock    clock.WithTicker
	exported func(cluster string) map[types.NamespacedName]struct{}
	reporter *Reporter
	changed  func(cluster string) // see Handle

	mu sync.Mutex
	// left has the Leases of the previous leader for clusters that have not joined, none once Run began.
	left    map[string]*coordinationv1.Lease
	members map[string]*Member
	ticked  time.Time // when tick last ran
	// set and network are the cluster set and the network of the local cluster.
	set, network string

	// Only Recall, and then keepLeases, use the fields below.
	leases    coordinationclient.LeaseInterface
	namespace string
	applied   map[string]*lease // by member, nil for a Lease of the previous leader
	foreign   map[string]bool   // the members whose Lease another writer made
	repeat    []string          // the members whose Lease is applied next although it has not changed
	repeated  time.Time         // when that was last done
}

// A Member has the facts known about one other cluster, and the Verdict on it.
type Member struct {
	liveness.Member
	Verdict liveness.Verdict
	// Heartbeat is the last one read, with the last valid Properties. Until the first is read, it has the records of the previous
	// leader: Drained and Properties.
	Heartbeat member.Heartbeat

	member *member.Member
	// lacking is how many known services the last list lacked.
	lacking int
	// answered is set once a heartbeat arrived since the credential or the annotations changed, and renewTime is when that first
	// was so for the last credential with a heartbeat.
	answered  bool
	renewTime *metav1.MicroTime
	// invalid has the last parts of heartbeats that could not be parsed, by message.
	invalid map[string]string
	// set is the cluster set of the last heartbeat with properties: it may be why they do not count. accepted is the text of the
	// properties that count, and properties is parsed from it: a member that is quarantined may be another cluster.
	set, accepted string
	properties    map[string]string
}

var _ member.Tracker = (*Tracker)(nil)

// NewTracker returns a tracker without members. exported returns the services that a cluster exported last, as far as they were
// imported, in a new map.
func NewTracker(
	limits liveness.Limits, now clock.WithTicker, exported func(cluster string) map[types.NamespacedName]struct{}, reporter *Reporter,
) *Tracker {
	return &Tracker{
		limits: limits, clock: now, exported: exported, reporter: reporter,
		members: map[string]*Member{}, ticked: now.Now(), left: map[string]*coordinationv1.Lease{},
		applied: map[string]*lease{}, foreign: map[string]bool{},
	}
}

// Handle sets the function that is called when the Verdict on a member or its Properties changed so that its services must be
// reconciled. It must not call the Tracker. Call Handle before Run, and before members are read.
func (t *Tracker) Handle(changed func(cluster string)) { t.changed = changed }

// Of returns the facts about a cluster, which may be no member. Maps and lists in them are shared and must not be changed.
func (t *Tracker) Of(cluster string) Member {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.members[cluster]; m != nil {
		return *m
	}
	return Member{Verdict: liveness.NoMember(cluster)}
}

// Read calls read, which reads slices of a member, and returns the verdict on them: no list becomes visible, and nothing is
// judged, in between. read must be short and not call the Tracker.
func (t *Tracker) Read(cluster string, read func()) liveness.Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	read()
	if m := t.members[cluster]; m != nil {
		return m.Verdict
	}
	return liveness.NoMember(cluster)
}

// SetLocal sets the values of scope.ClusterSetProperty and scope.NetworkProperty of the local cluster, empty for none. Call it
// before there are members, and when a value changes. Members of another set are quarantined within a second, members without a
// set are not.
func (t *Tracker) SetLocal(set, network string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.set, t.network = set, network
}

// Properties returns the ClusterProperties of a member, name to value, as last accepted, nil if they never were known. The map
// is shared and must not be changed.
func (t *Tracker) Properties(cluster string) map[string]string { return t.Of(cluster).properties }

// Requests returns the probe targets to probe, sorted by address, which spreads the probes of one member over a round.
func (t *Tracker) Requests() (requests []liveness.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for cluster, m := range t.members {
		for _, each := range m.ProbedTargets {
			requests = append(requests, liveness.Request{Cluster: cluster, Address: each.Address, Key: m.Heartbeat.LeaseUID})
		}
	}
	slices.SortFunc(requests, func(a, b liveness.Request) int { return a.Address.Compare(b.Address) })
	return requests
}

// Track implements member.Tracker.
func (t *Tracker) Track(m *member.Member) {
	t.change(func(now time.Time) {
		known := t.members[m.Cluster()]
		if known == nil {
			known = t.recall(now, m.Cluster())
			t.members[m.Cluster()] = known
		}
		known.member, known.answered = m, false
		t.put(now, known)
	})
}

// Untrack implements member.Tracker.
func (t *Tracker) Untrack(cluster string) {
	t.change(func(time.Time) { delete(t.members, cluster) })
}

// LeaseRead implements member.Tracker.
func (t *Tracker) LeaseRead(from *member.Member, is member.Heartbeat, renewed bool) {
	cluster := from.Cluster()
	t.update(cluster, from, func(now time.Time, m *Member) {
		if renewed {
			m.Arrivals = m.Arrivals.Received(now, is.KubeSystemUID, t.limits)
			if !m.answered {
				m.answered, m.renewTime = true, new(metav1.NewMicroTime(now))
			}
		} else {
			m.Arrivals = m.Arrivals.Seen(now, is.KubeSystemUID)
		}
		if is.Properties != m.Heartbeat.Properties {
			switch parsed, err := scope.ParseProperties(is.Properties); {
			case err != nil:
				t.ignored(m, is.Properties, "Ignored the properties of a member; the known ones stay", err)
				is.Properties = m.Heartbeat.Properties
			case parsed != nil: // a cluster whose properties become unknown stays in its set
				m.set = parsed[scope.ClusterSetProperty]
			}
		}
		m.Heartbeat = is
		mistaken := is.Cluster != "" && is.Cluster != cluster
		if m.Mistaken && !mistaken {
			// The slices with the corrected id may arrive after this heartbeat, on a watch of their own. They count from the
			// next heartbeat on.
			m.Shrunk = now
		}
		m.Mistaken = mistaken
		if m.Lost.IsZero() {
			return
		}
		if before, lacking := t.compare(cluster, m.member.Services()); !liveness.LostMost(before, before-lacking) {
			m.Lost = time.Time{}
		}
	})
}

// Listed implements member.Tracker.
func (t *Tracker) Listed(from *member.Member, uid string, services []types.NamespacedName, show func()) {
	t.update(from.Cluster(), from, func(now time.Time, m *Member) {
		show()
		before, lacking := t.compare(m.Cluster, services)
		m.ListedUID, m.Shrunk = uid, time.Time{}
		if lacking > 0 {
			m.Shrunk = now
		}
		switch {
		case !liveness.LostMost(before, before-lacking):
			m.Lost = time.Time{}
		case m.Lost.IsZero() || lacking > m.lacking: // a confirmation or the time of a smaller loss does not count
			m.Lost = m.Shrunk
		}
		m.lacking = lacking
	})
}

// Probed records the result of a probe of a member: see liveness.Member.
func (t *Tracker) Probed(cluster string, probe liveness.Probe) {
	t.update(cluster, nil, func(_ time.Time, m *Member) { m.Probed(probe, t.limits) })
}

// offer updates the probe targets to probe from the last heartbeat of a member. The caller holds the lock.
func (t *Tracker) offer(m *Member) {
	text := m.Heartbeat.Targets
	if m.properties[scope.NetworkProperty] != t.network {
		text = m.Heartbeat.ExposedTargets
	}
	targets, err := t.DecodeTargets(text, m.member.CIDRs())
	if err != nil {
		t.ignored(m, text, "Ignored the probe targets of a member, which is not probed", err)
	}
	m.Offered(targets)
}

// ignored logs that a part of a heartbeat is invalid, unless the last log line was about the same.
func (t *Tracker) ignored(m *Member, text, message string, err error) {
	if text != m.invalid[message] {
		m.invalid[message] = text
		t.reporter.Logger.Error(errors.New(documents.Safe(err.Error())), message, "member", m.Cluster)
	}
}

// compare returns how many services a member exported last, and how many of them are not among services.
func (t *Tracker) compare(cluster string, services []types.NamespacedName) (before, lacking int) {
	known := t.exported(cluster)
	before = len(known)
	for _, service := range services {
		delete(known, service)
	}
	return before, len(known)
}

// update changes the facts of a member and judges it. It does nothing for a cluster that is no member, nor for facts from a
// former connection; from may be nil.
func (t *Tracker) update(cluster string, from *member.Member, change func(now time.Time, m *Member)) {
	t.change(func(now time.Time) {
		if m := t.members[cluster]; m != nil && (from == nil || from == m.member) {
			change(now, m)
			t.put(now, m)
		}
	})
}

// put judges the facts of a member. The caller holds the lock.
func (t *Tracker) put(now time.Time, m *Member) {
	annotations := m.member.Annotations()
	m.Drained = m.Heartbeat.Drained || annotations[AnnotationDrain] == "true"
	m.Confirmed = annotations[AnnotationConfirm]
	m.OtherSet = t.set != "" && m.set != "" && t.set != m.set
	was, redescribed := m.Verdict, false
	m.Verdict = liveness.Judge(now, t.limits, m.Member)
	is := m.Verdict
	if is.Token == "" && !m.Mistaken && !m.OtherSet {
		// Not quarantined: after long enough, or once confirmed, its data is accepted for good. That changes no verdict.
		m.Lost = time.Time{}
		m.KnownUID = cmp.Or(m.Arrivals.UID, m.KnownUID)
		if redescribed = m.accepted != m.Heartbeat.Properties; redescribed {
			m.accepted = m.Heartbeat.Properties
			m.properties, _ = scope.ParseProperties(m.accepted)
		}
	}
	if redescribed || was.Demote != is.Demote || was.Keep != is.Keep || (was.State == liveness.Gone) != (is.State == liveness.Gone) {
		t.changed(is.Cluster)
	}
	if is.State != was.State || is.Reason != was.Reason || is.Token != was.Token && is.Token != "" {
		t.reporter.judged(m.member, was, is)
	}
}

// change calls do with the lock.
func (t *Tracker) change(do func(now time.Time)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	do(t.clock.Now())
}

// tick judges what time alone changed.
func (t *Tracker) tick() {
	t.change(func(now time.Time) {
		var all []*liveness.Arrivals
		for _, m := range t.members {
			all = append(all, &m.Arrivals)
			if t.DecodeTargets != nil && m.Heartbeat.LeaseUID != "" {
				t.offer(m)
			}
		}
		// In a longer time, this process did not run, and received no heartbeats.
		liveness.Tick(now, min(now.Sub(t.ticked), liveness.HeartbeatInterval), all)
		t.ticked = now
		for _, m := range t.members {
			t.put(now, m)
		}
	})
}

// Run judges all members again each second, and writes their Leases, until the context ends. Call it after Members.Join.
func (t *Tracker) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { t.keepLeases(ctx) })
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

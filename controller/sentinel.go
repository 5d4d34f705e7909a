// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// Annotations on a member's Secret by which a person has the say.
const (
	// AnnotationDrain asks for the endpoints of the cluster to be demoted when
	// its value is "true".
	AnnotationDrain = "clusterset-dns.github.io/drain"
	// AnnotationConfirm says that a member which is held is to be believed. Its
	// value is the token that the Event names.
	AnnotationConfirm = "clusterset-dns.github.io/confirm"
)

// A sentinel collects what is known of the life of the members, and has it
// judged (docs/design/liveness.md) whenever that changes or time makes a
// difference. Its judgement is the present one as soon as the function that
// brought the news returns. It is safe for concurrent use.
type sentinel struct {
	limits liveness.Limits
	clock  clock.WithTicker
	// known returns the services that a cluster is believed to export.
	known func(cluster string) map[types.NamespacedName]struct{}
	// changed is told of a cluster whose endpoints are to be looked at again,
	// tell of what was judged before and now. They are called without the lock.
	changed func(cluster string)
	tell    func(before, after liveness.Judgement)
	// left are the Leases as a predecessor left them, by cluster.
	left map[string]memory

	mu        sync.Mutex
	members   map[string]*watched
	judgement liveness.Judgement
	news      chan struct{} // for the timer
	noted     chan struct{} // for the Leases
}

// watched is the facts of one member.
type watched struct {
	liveness.Member
	source *member.Member
}

// memory is what one process leaves to the next of a member.
type memory struct {
	state liveness.State
	uid   string
}

func newSentinel(limits liveness.Limits, now clock.WithTicker) *sentinel {
	return &sentinel{
		limits: limits, clock: now,
		members: map[string]*watched{},
		news:    make(chan struct{}, 1),
		noted:   make(chan struct{}, 1),
	}
}

// verdict is what is judged of a member now.
func (s *sentinel) verdict(cluster string) liveness.Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.judgement.Of(cluster)
}

// judged is what is judged of all members now.
func (s *sentinel) judged() liveness.Judgement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.judgement
}

// joins is told of a member before anything is read of it, and again when its
// credential was replaced.
func (s *sentinel) joins(m *member.Member) {
	s.update(func() {
		if old := s.members[m.Cluster()]; old != nil {
			old.source = m
			return
		}
		left := s.left[m.Cluster()]
		delete(s.left, m.Cluster()) // who leaves and joins again is new
		s.members[m.Cluster()] = &watched{source: m, Member: liveness.Member{
			Cluster:  m.Cluster(),
			Arrivals: liveness.Arrivals{Joined: s.clock.Now()},
			Before:   left.state,
			KnownUID: left.uid,
		}}
	})
}

// remain is told that the members may be others now. They are asked for under
// the lock: a list from before could lack one that joined meanwhile.
func (s *sentinel) remain(current func() []*member.Member) {
	s.update(func() {
		members := current()
		maps.DeleteFunc(s.members, func(cluster string, _ *watched) bool {
			return !slices.ContainsFunc(members, func(m *member.Member) bool { return m.Cluster() == cluster })
		})
	})
}

// read is told that a member's Lease was read, whether it is a heartbeat, and
// whether it is that of a cluster which calls itself by another id. Such a one
// never becomes the one that is known.
func (s *sentinel) read(cluster, uid string, at time.Time, heartbeat, mistaken bool) {
	s.update(func() {
		w := s.members[cluster]
		if w == nil {
			return
		}
		if heartbeat {
			w.Arrivals = w.Arrivals.Heard(at, uid, s.limits)
		} else {
			w.Arrivals = w.Arrivals.Seen(at, uid)
		}
		if w.Mistaken && !mistaken {
			// The cluster publishes its exports under this id between this heartbeat
			// and the next one (heartbeat.announce), so its slices count from the
			// next one on.
			w.Shrunk = at
		}
		w.Mistaken = mistaken
		if w.KnownUID == "" && !mistaken {
			w.KnownUID = w.Arrivals.UID
		}
		if w.Lost.IsZero() {
			return
		}
		if before, lacking := s.compare(w, w.source.Services()); !liveness.LostMost(before, before-lacking) {
			w.Lost = time.Time{}
		}
	})
}

// listing is told of the services of which all slices of a member were read,
// before anybody looks at them.
func (s *sentinel) listing(cluster string, services []types.NamespacedName) {
	s.update(func() {
		w := s.members[cluster]
		if w == nil {
			return
		}
		before, lacking := s.compare(w, services)
		w.Shrunk = time.Time{}
		if lacking > 0 {
			w.Shrunk = s.clock.Now()
		}
		switch {
		case !liveness.LostMost(before, before-lacking):
			w.Lost = time.Time{}
		case w.Lost.IsZero():
			w.Lost = w.Shrunk
		}
	})
}

// compare returns how many services a member is believed to export, and how
// many of them it does not speak of.
func (s *sentinel) compare(w *watched, services []types.NamespacedName) (before, lacking int) {
	known := s.known(w.Cluster)
	before = len(known)
	for _, service := range services {
		delete(known, service)
	}
	return before, len(known)
}

// update changes facts, has them judged, and tells what came of it.
func (s *sentinel) update(change func()) {
	s.mu.Lock()
	change()
	before := s.judgement
	facts := make([]liveness.Member, 0, len(s.members))
	for _, w := range s.members {
		annotations := w.source.Annotations()
		w.Drained = annotations[AnnotationDrain] == "true"
		w.Confirmed = annotations[AnnotationConfirm]
		facts = append(facts, w.Member)
	}
	after := liveness.Judge(s.clock.Now(), s.limits, facts)
	s.judgement = after
	for _, w := range s.members {
		if after.Of(w.Cluster).Token != "" || w.Mistaken {
			continue // held
		}
		// What was looked at twice, or confirmed, is believed for good.
		w.Lost = time.Time{}
		if w.Arrivals.UID != "" {
			w.KnownUID = w.Arrivals.UID
		}
	}
	s.mu.Unlock()

	for _, is := range after.Members {
		was := before.Of(is.Cluster)
		if was.Demote != is.Demote || was.Keep != is.Keep || (was.State == liveness.Gone) != (is.State == liveness.Gone) {
			s.changed(is.Cluster)
		}
	}
	s.tell(before, after)
	trigger(s.news)
	trigger(s.noted)
}

// trigger makes a channel of size one receive. One that is due sees this too.
func trigger(channel chan<- struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

// run judges whenever time makes a difference, until the context ends.
func (s *sentinel) run(ctx context.Context) {
	for {
		var timer clock.Timer
		var due <-chan time.Time
		if next := s.judged().Next; !next.IsZero() {
			timer = s.clock.NewTimer(next.Sub(s.clock.Now()))
			due = timer.C()
		}
		select {
		case <-ctx.Done():
		case <-s.news:
		case <-due:
			s.update(func() {})
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return
		}
	}
}

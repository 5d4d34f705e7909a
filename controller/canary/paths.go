// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// forgetAfter is how long a member may offer no canary before its path is forgotten: its replicas may all be unready for
// a moment.
const forgetAfter = 30 * time.Second

// Paths judge by the probes of their canaries which members are reached (docs/design.md): they are a
// memberstate.Layer. A probe costs the same however many members there are. They are safe for concurrent use.
type Paths struct {
	limits liveness.Limits
	// changed is called without the lock once a path changed.
	changed func(cluster string)

	mu      sync.Mutex
	members map[string]*path
}

// A path is what is known of the path to one member.
type path struct {
	is       liveness.Path
	canaries map[netip.AddrPort]*verdict
	// empty is since when none is offered; zero while some are.
	empty time.Time
	// cuts are when it last became Unreachable. It does not matter whether the fault was local: see liveness.Judge.
	cuts liveness.Failures
	// steady is since when at least half of the canaries are reached; zero while they are not.
	steady time.Time
}

var _ memberstate.Layer = (*Paths)(nil)

// NewPaths returns the paths to no members. The limits must be valid. changed is called, without locks, with each member
// whose path changed.
func NewPaths(limits liveness.Limits, changed func(cluster string)) *Paths {
	return &Paths{limits: limits, changed: changed, members: map[string]*path{}}
}

// Path implements memberstate.Layer.
func (v *Paths) Path(cluster string) liveness.Path {
	v.mu.Lock()
	defer v.mu.Unlock()
	if m := v.members[cluster]; m != nil {
		return m.is
	}
	return liveness.Unknown
}

// Restore implements memberstate.Layer.
func (v *Paths) Restore(cluster string, was liveness.Path) {
	if was == liveness.Reachable || was == liveness.Unreachable {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.member(cluster).is = was
	}
}

// retain forgets all other members.
func (v *Paths) retain(present map[string]bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for cluster := range v.members {
		if !present[cluster] {
			delete(v.members, cluster)
		}
	}
}

// Witnesses implements memberstate.Layer.
func (v *Paths) Witnesses() (all []memberstate.Witness) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for cluster, m := range v.members {
		for address, each := range m.canaries {
			all = append(all, memberstate.Witness{Cluster: cluster, Address: address, Zone: each.zone, Fails: each.cut})
		}
	}
	slices.SortFunc(all, func(a, b memberstate.Witness) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), a.Address.Compare(b.Address))
	})
	return all
}

// offer sets the canaries of a member, in any order. A member that offers none for a while is forgotten.
func (v *Paths) offer(now time.Time, cluster string, canaries []Canary) {
	if v.offered(now, cluster, canaries) {
		v.changed(cluster)
	}
}

// offered is offer, and reports whether the path changed.
func (v *Paths) offered(now time.Time, cluster string, canaries []Canary) (changed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	m := v.members[cluster]
	switch {
	case len(canaries) > 0:
		m = v.member(cluster)
		before := m.canaries
		m.canaries, m.empty = make(map[netip.AddrPort]*verdict, len(canaries)), time.Time{}
		for _, each := range canaries {
			known := before[each.Address]
			if known == nil {
				known = &verdict{cut: m.is == liveness.Unreachable} // a new canary proves nothing yet, in either direction
			}
			known.zone = each.Zone
			m.canaries[each.Address] = known
		}
	case m == nil:
	case m.empty.IsZero():
		m.empty = now
	case now.Sub(m.empty) >= forgetAfter:
		delete(v.members, cluster)
		return m.is != liveness.Unknown
	}
	return false
}

// probed takes the result of a probe. It ignores a canary that is not offered. Probes of one canary are to be passed in
// the order in which they ended.
func (v *Paths) probed(p Probe) {
	v.mu.Lock()
	m := v.members[p.Cluster]
	if m == nil || m.canaries[p.Canary] == nil {
		v.mu.Unlock()
		return
	}
	was := m.is
	m.canaries[p.Canary].probed(p, len(m.canaries) == 1, v.limits.StaleAfter)
	if m.is = v.judge(m, p); m.is == liveness.Unreachable && was != liveness.Unreachable {
		m.cuts = m.cuts.And(p.Ended)
	}
	changed := m.is != was
	v.mu.Unlock()
	if changed {
		v.changed(p.Cluster)
	}
}

// member returns what is known of a member, which may be new. The caller holds the lock.
func (v *Paths) member(cluster string) *path {
	m := v.members[cluster]
	if m == nil {
		m = &path{}
		v.members[cluster] = m
	}
	return m
}

// judge returns the path to a member after a probe of it. The caller holds the lock.
func (v *Paths) judge(m *path, p Probe) liveness.Path {
	cut := 0
	for _, each := range m.canaries {
		if each.cut {
			cut++
		}
	}
	most := 2*cut > len(m.canaries)
	switch {
	case most:
		m.steady = time.Time{}
	case m.steady.IsZero():
		m.steady = p.Ended
	}
	switch {
	case m.is == liveness.Unknown && p.Outcome != Answered:
		return liveness.Unknown
	case m.is == liveness.Unreachable && (most || m.cuts.Flapping(p.Ended, m.steady, v.limits)):
		return liveness.Unreachable
	case !most:
		return liveness.Reachable
	}
	return liveness.Unreachable
}

// SPDX-License-Identifier: Apache-2.0

package liveness

import "time"

// A Path tells whether connections from the local cluster reach the pods of a member.
type Path int

// Paths to a member.
const (
	// PathUnknown: it has no canary, or none answered yet.
	PathUnknown Path = iota
	// Reachable: at least half of its canaries are reached.
	Reachable
	// Unreachable: most of its canaries are not reached.
	Unreachable
)

// AllPaths are the possible values.
var AllPaths = []Path{PathUnknown, Reachable, Unreachable}

// String returns the path in lower case.
func (p Path) String() string {
	return [...]string{"unknown", "reachable", "unreachable"}[p]
}

// ParsePath is the inverse of String. An unknown word is PathUnknown, which demotes nothing.
func ParsePath(text string) Path {
	for _, path := range AllPaths {
		if text == path.String() {
			return path
		}
	}
	return PathUnknown
}

// Paths judge by the probes of their canaries which members are reached (docs/design/path.md). A probe costs the same
// however many members there are. Paths are not safe for concurrent use.
type Paths struct {
	limits  Limits
	members map[string]*path
	// uncounted are the Unreachable members whose fault may be local.
	uncounted map[string]*path
}

// A path is what is known of the path to one member.
type path struct {
	is       Path
	canaries map[string]*canary
	// cuts are when it last became Unreachable by a fault that was not local, oldest first, at most flaps.
	cuts []time.Time
	// since is when it last became Unreachable, and elsewhere when a probe began after that which another member
	// answered; zero if none did.
	since, elsewhere time.Time
	// steady is since when at least half of the canaries are reached; zero while they are not.
	steady time.Time
}

// NewPaths returns the paths to no members. The limits must be valid.
func NewPaths(limits Limits) *Paths {
	return &Paths{limits: limits, members: map[string]*path{}, uncounted: map[string]*path{}}
}

// Of returns the path to a member, as of the last call.
func (v *Paths) Of(cluster string) Path {
	if m := v.members[cluster]; m != nil {
		return m.is
	}
	return PathUnknown
}

// Restore sets the path that the previous leader left. It is to be called before Offer.
func (v *Paths) Restore(cluster string, was Path) {
	if was != PathUnknown {
		v.member(cluster).is = was
	}
}

// Offer sets the canaries of a member, in any order, and reports whether that changed its path: without canaries it is
// PathUnknown.
func (v *Paths) Offer(cluster string, canaries []string) (changed bool) {
	if len(canaries) == 0 {
		return v.Remove(cluster)
	}
	m := v.member(cluster)
	before := m.canaries
	m.canaries = make(map[string]*canary, len(canaries))
	for _, name := range canaries {
		if m.canaries[name] = before[name]; m.canaries[name] == nil {
			// A new canary proves nothing yet, in either direction.
			m.canaries[name] = &canary{cut: m.is == Unreachable}
		}
	}
	return false
}

// Remove forgets a member, and reports whether that changed its path.
func (v *Paths) Remove(cluster string) (changed bool) {
	m := v.members[cluster]
	if m == nil {
		return false
	}
	delete(v.members, cluster)
	delete(v.uncounted, cluster)
	return m.is != PathUnknown
}

// Cut reports whether a canary of a member counts as not reached.
func (v *Paths) Cut(cluster, canary string) bool {
	m := v.members[cluster]
	return m != nil && m.canaries[canary] != nil && m.canaries[canary].cut
}

// Probed takes the result of a probe, and reports whether it changed the path to the member. It ignores a canary that
// is no longer offered. Probes of one canary are to be passed in the order in which they ended.
func (v *Paths) Probed(p Probe) (changed bool) {
	m := v.members[p.Cluster]
	if m == nil || m.canaries[p.Canary] == nil {
		return false
	}
	m.canaries[p.Canary].probed(p, len(m.canaries) == 1, v.limits.StaleAfter)
	if p.Outcome == Answered {
		v.answered(p)
	}
	was := m.is
	m.is = v.judge(m, p)
	switch {
	case m.is != Unreachable:
		delete(v.uncounted, p.Cluster)
	case was != Unreachable:
		m.since, m.elsewhere = p.Ended, time.Time{}
		v.uncounted[p.Cluster] = m
	}
	v.count(m, p)
	return m.is != was
}

// Doubtful reports whether the next probes of the canary of a probe, which was passed to Probed last, or of others may
// show that the member is not reached. It is so for a few seconds after a canary stopped answering.
func (v *Paths) Doubtful(p Probe) bool {
	m := v.members[p.Cluster]
	return m != nil && m.is != Unreachable && m.canaries[p.Canary] != nil && m.canaries[p.Canary].doubtful(p)
}

// member returns what is known of a member, which may be new.
func (v *Paths) member(cluster string) *path {
	m := v.members[cluster]
	if m == nil {
		m = &path{}
		v.members[cluster] = m
	}
	return m
}

// judge judges the path to a member after a probe of it.
func (v *Paths) judge(m *path, p Probe) Path {
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
	case m.is == PathUnknown && p.Outcome != Answered:
		return PathUnknown
	case m.is == Unreachable && (most || v.flapping(m, p.Ended)):
		return Unreachable
	case !most:
		return Reachable
	}
	return Unreachable
}

// count counts a cut of the path to a member once the fault is not local: another member answered a probe that began
// since, and a later probe of this one failed. A repair of a local fault so proves nothing. Without another member,
// nothing tells where the fault is, and each cut counts.
func (v *Paths) count(m *path, p Probe) {
	proven := !m.elsewhere.IsZero() && p.Outcome == Unanswered && p.Began.After(m.elsewhere)
	if v.uncounted[p.Cluster] != m || !proven && len(v.members) > 1 {
		return
	}
	delete(v.uncounted, p.Cluster)
	m.cuts = append(m.cuts, m.since)
	m.cuts = m.cuts[max(0, len(m.cuts)-flaps):]
}

// answered takes a probe that was answered.
func (v *Paths) answered(p Probe) {
	for cluster, m := range v.uncounted {
		if cluster != p.Cluster && m.elsewhere.IsZero() && p.Began.After(m.since) {
			m.elsewhere = p.Began
		}
	}
}

// flapping reports whether the path was cut repeatedly, and was not whole for long enough since.
func (v *Paths) flapping(m *path, now time.Time) bool {
	return len(m.cuts) == flaps && now.Sub(m.cuts[0]) <= flapWindow*v.limits.StaleAfter &&
		now.Sub(m.steady) < settle*v.limits.StaleAfter
}

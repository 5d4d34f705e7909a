// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"slices"
	"time"
)

// A Path tells whether connections from the local cluster reach the pods of a member.
type Path int

// Paths to a member.
const (
	// PathUnknown: it has no canary, or none answered yet.
	PathUnknown Path = iota
	// Reachable: at least half of its canaries are reached.
	Reachable
	// Unreachable: most of its canaries are not reached, and the fault is not local.
	Unreachable
	// Unproven: most of its canaries are not reached, and no other member is either. The fault is probably local.
	Unproven
)

// AllPaths are the possible values.
var AllPaths = []Path{PathUnknown, Reachable, Unreachable, Unproven}

// String returns the path in lower case.
func (p Path) String() string {
	return [...]string{"unknown", "reachable", "unreachable", "unproven"}[p]
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

const (
	// Answers of canaries are remembered for remembered, two of different members in each resolution.
	remembered = time.Minute
	resolution = 250 * time.Millisecond
)

// Paths judge by the probes of their canaries which members are reached (docs/design/path.md). A probe costs the same
// however many members there are. Paths are not safe for concurrent use.
type Paths struct {
	limits  Limits
	members map[string]*path
	// candidates is the number of members that are Reachable or Unproven.
	candidates int
	// answers are probes that were answered, oldest first.
	answers []answer
}

// A path is what is known of the path to one member.
type path struct {
	is       Path
	canaries map[string]*canary
	// cuts are when it last became Unreachable, oldest first, at most flaps.
	cuts []time.Time
	// steady is since when at least half of the canaries are reached; zero while they are not.
	steady time.Time
}

// An answer is a probe that was answered.
type answer struct {
	cluster string
	began   time.Time
}

// NewPaths returns the paths to no members. The limits must be valid.
func NewPaths(limits Limits) *Paths { return &Paths{limits: limits, members: map[string]*path{}} }

// Of returns the path to a member, as of the last call.
func (v *Paths) Of(cluster string) Path {
	if m := v.members[cluster]; m != nil {
		return m.is
	}
	return PathUnknown
}

// Restore sets the path that the previous leader left. It is to be called before Offer.
func (v *Paths) Restore(cluster string, was Path) {
	switch was {
	case Reachable, Unproven:
		v.set(v.member(cluster), Reachable)
	case Unreachable:
		v.set(v.member(cluster), Unreachable)
	case PathUnknown:
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
	was := m.is
	v.set(m, PathUnknown)
	delete(v.members, cluster)
	return was != PathUnknown
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
	v.set(m, v.judge(m, p))
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

func (v *Paths) set(m *path, is Path) {
	candidate := func(p Path) bool { return p == Reachable || p == Unproven }
	switch {
	case candidate(is) && !candidate(m.is):
		v.candidates++
	case !candidate(is) && candidate(m.is):
		v.candidates--
	}
	m.is = is
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
	case m.is == PathUnknown || !v.proven(m, p.Cluster): // one that is not known yet is no candidate
		return Unproven
	}
	m.cuts = append(m.cuts, p.Ended)
	m.cuts = m.cuts[max(0, len(m.cuts)-flaps):]
	return Unreachable
}

// flapping reports whether the path was cut repeatedly, and was not whole for long enough since.
func (v *Paths) flapping(m *path, now time.Time) bool {
	return len(m.cuts) == flaps && now.Sub(m.cuts[0]) <= flapWindow*v.limits.StaleAfter &&
		now.Sub(m.steady) < settle*v.limits.StaleAfter
}

// proven reports whether the fault is not local: another member answered a probe that began after the canaries failed,
// and they failed again after it began. A repair of a local fault so proves nothing. Without another member that could
// answer, nothing tells where the fault is.
func (v *Paths) proven(m *path, cluster string) bool {
	if v.candidates <= 1 {
		return true
	}
	var after, before time.Time
	for _, each := range m.canaries {
		switch {
		case !each.cut:
			continue
		case each.failed == 0:
			return false
		}
		if each.firstEnded.After(after) {
			after = each.firstEnded
		}
		before = earlier(before, each.lastBegan)
	}
	return slices.ContainsFunc(v.answers, func(a answer) bool {
		return a.cluster != cluster && a.began.After(after) && a.began.Before(before)
	})
}

// answered remembers an answer, if it may tell more than those before.
func (v *Paths) answered(p Probe) {
	recent := 0
	for _, each := range slices.Backward(v.answers) {
		if p.Began.Sub(each.began) >= resolution {
			break
		}
		if recent++; each.cluster == p.Cluster || recent == 2 {
			return
		}
	}
	old := 0
	for old < len(v.answers) && p.Began.Sub(v.answers[old].began) > remembered {
		old++
	}
	v.answers = append(slices.Delete(v.answers, 0, old), answer{p.Cluster, p.Began})
}

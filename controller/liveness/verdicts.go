// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"cmp"
	"slices"
	"time"
)

// Verdicts are what Judge returns, kept up to date one member at a time: a heartbeat costs the same however many
// members there are. The members are looked at together only when one joins or leaves, when isolation begins or ends,
// and when time alone may change a verdict.
//
// Times that are passed must not decrease. Verdicts are not safe for concurrent use.
type Verdicts struct {
	surroundings
	of map[string]*standing
	// silent is the number of members that were silent when they were judged last.
	silent int
	// next is when time alone may change something; zero if it cannot. It may be early, never late.
	next time.Time
	// before are the verdicts before the current call, of the members whose verdict it changed.
	before map[string]Verdict
	// looks counts the members that were looked at, for the tests.
	looks int
}

// standing is a member with the verdict on it.
type standing struct {
	Member
	verdict Verdict
	due     time.Time
	silent  bool
}

// A Change is a verdict that is not what it was. A member that joins was as unknown members are (Judgement.Of).
type Change struct{ Was, Is Verdict }

// NewVerdicts returns the verdicts on no members. The limits must be valid.
func NewVerdicts(limits Limits) *Verdicts {
	return &Verdicts{
		surroundings: surroundings{limits: limits},
		of:           map[string]*standing{}, before: map[string]Verdict{},
	}
}

// Of returns the verdict on a member, as of the last call. An unknown member is Fresh.
func (v *Verdicts) Of(cluster string) Verdict {
	if member := v.of[cluster]; member != nil {
		return member.verdict
	}
	return unknown(cluster)
}

// Isolated is set while no member is heard: the fault is probably local.
func (v *Verdicts) Isolated() bool { return v.alone }

// Next returns when time alone may change the judgement; zero if it cannot. It may be early, never late.
func (v *Verdicts) Next() time.Time { return v.next }

// Judgement returns all verdicts, as of the last call.
func (v *Verdicts) Judgement() Judgement {
	judgement := Judgement{Isolated: v.alone, Next: v.next}
	for _, member := range v.of {
		judgement.Members = append(judgement.Members, member.verdict)
	}
	slices.SortFunc(judgement.Members, func(a, b Verdict) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return judgement
}

// Set replaces the facts of a member, or adds it, and returns what changed, sorted by cluster. The arrivals must be
// those that were set before, after at most one call of Heard.
func (v *Verdicts) Set(now time.Time, member Member) []Change {
	v.pass(now)
	is := v.of[member.Cluster]
	if is == nil {
		v.of[member.Cluster] = &standing{Member: member, verdict: unknown(member.Cluster)}
		v.all(now)
		return v.changes()
	}
	was := is.Arrivals
	is.Member = member
	if v.rewrites(now, was, member.Arrivals) {
		v.all(now)
	} else {
		v.one(now, is)
	}
	return v.changes()
}

// Remove removes a member, and returns what changed for the others, sorted by cluster.
func (v *Verdicts) Remove(now time.Time, cluster string) []Change {
	v.pass(now)
	if v.of[cluster] != nil {
		delete(v.of, cluster)
		delete(v.before, cluster)
		v.all(now)
	}
	return v.changes()
}

// Pass returns what time alone changed, sorted by cluster.
func (v *Verdicts) Pass(now time.Time) []Change {
	v.pass(now)
	return v.changes()
}

// rewrites reports whether new arrivals of a known member may change when the local cluster was isolated. An ordinary
// heartbeat does not: its member was silent for part of each isolation that is known, and no isolation goes on.
func (v *Verdicts) rewrites(now time.Time, was, is Arrivals) bool {
	heard := is.silentFrom()
	if heard.Equal(was.silentFrom()) {
		return false
	}
	if v.alone || now.Sub(heard) > v.limits.quiet() {
		return true // it ends the isolation, or arrived long ago
	}
	since := heard
	if was.Last.IsZero() {
		since = was.Joined
	}
	if last := len(v.isolated) - 1; last >= 0 && since.Before(v.isolated[last].Until) {
		return true // it arrived before the heartbeat that ended the isolation, or is the first since
	}
	forgotten := len(was.Silences) > 0 && was.Silences[0] != is.Silences[0]
	return forgotten && len(intersect(was.Silences[:1], v.isolated)) > 0
}

// pass judges the members that time alone may have changed.
func (v *Verdicts) pass(now time.Time) {
	if v.next.IsZero() || now.Before(v.next) {
		return
	}
	v.next = time.Time{}
	changed := false
	for _, member := range v.of {
		v.looks++
		if !member.due.IsZero() && !now.Before(member.due) {
			v.one(now, member)
			changed = true
		} else {
			v.next = earlier(v.next, member.due)
		}
	}
	if changed && v.silent == len(v.of) {
		v.all(now) // isolation may begin
	}
}

// one judges one member.
func (v *Verdicts) one(now time.Time, member *standing) {
	v.looks++
	if v.alone {
		v.isolated[len(v.isolated)-1].Until = now
	}
	verdict, due := v.judge(now, member.Member)
	v.next = earlier(v.next, due)
	silent := member.Arrivals.Last.IsZero() || now.Sub(member.Arrivals.Last) > v.limits.quiet()
	switch {
	case silent && !member.silent:
		v.silent++
	case !silent && member.silent:
		v.silent--
	}
	member.due, member.silent = due, silent
	if _, known := v.before[member.Cluster]; !known && verdict != member.verdict {
		v.before[member.Cluster] = member.verdict
	}
	member.verdict = verdict
}

// all judges all members, and determines anew when the local cluster was isolated.
func (v *Verdicts) all(now time.Time) {
	members := make([]Member, 0, len(v.of))
	v.silent = 0
	for _, member := range v.of {
		member.silent = false
		members = append(members, member.Member)
	}
	v.members = len(members)
	v.look(now, members)
	v.next = time.Time{}
	for _, member := range v.of {
		v.one(now, member)
	}
}

// changes returns what the current call changed, and forgets it.
func (v *Verdicts) changes() []Change {
	var changes []Change
	for cluster, was := range v.before {
		if is := v.Of(cluster); is != was {
			changes = append(changes, Change{was, is})
		}
	}
	clear(v.before)
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Is.Cluster, b.Is.Cluster) })
	return changes
}

// unknown is the verdict on a cluster that is no member.
func unknown(cluster string) Verdict { return Verdict{Cluster: cluster, Reason: NotYetHeard} }

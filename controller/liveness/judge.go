// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"cmp"
	"slices"
	"time"
)

// A State of a member. The order is from best to worst.
type State int

// States of a member.
const (
	// Fresh: its data is used.
	Fresh State = iota
	// Stale: its endpoints are used only where no other cluster has a ready one.
	Stale
	// Gone: it contributes nothing.
	Gone
)

// String returns the state in lower case.
func (s State) String() string { return [...]string{"fresh", "stale", "gone"}[s] }

// ParseState is the inverse of String. An unknown word is Fresh, which demotes nothing.
func ParseState(text string) State {
	for _, state := range []State{Stale, Gone} {
		if text == state.String() {
			return state
		}
	}
	return Fresh
}

// A Reason is why a member is in its state, in the form of a Condition's reason.
type Reason string

// Reasons of a state.
const (
	// Heard: its heartbeats arrive.
	Heard Reason = "Heard"
	// NotYetHeard: it joined less than StaleAfter ago.
	NotYetHeard Reason = "NotYetHeard"
	// AllMembersSilent: no member is heard, so the local cluster is probably isolated and keeps the states.
	AllMembersSilent Reason = "AllMembersSilent"
	// NoPodsReached: the pods of no member are reached, so the fault is probably local and the states stay.
	NoPodsReached Reason = "NoPodsReached"
	// Silent: no heartbeat arrived for too long.
	Silent Reason = "Silent"
	// Flapping: it failed at least three times recently, and was not heard long enough since.
	Flapping Reason = "Flapping"
	// PodsUnreachable: its heartbeats may arrive, but connections to its pods do not (Unreachable).
	PodsUnreachable Reason = "PodsUnreachable"
	// AnotherCluster: the UID of its namespace kube-system is not the known one.
	AnotherCluster Reason = "AnotherCluster"
	// ClusterIDMismatch: its heartbeat has another cluster id than its credential.
	ClusterIDMismatch Reason = "ClusterIDMismatch"
	// OtherClusterSet: it is of another cluster set than the local cluster.
	OtherClusterSet Reason = "OtherClusterSet"
	// ExportsLost: most or all of its exports were gone in one list.
	ExportsLost Reason = "ExportsLost"
)

// A Member has the facts about one other cluster.
type Member struct {
	// Cluster is its id; no two members have the same.
	Cluster string
	// Arrivals are its heartbeats.
	Arrivals Arrivals
	// Before is the state that the previous leader left. It counts until the first heartbeat.
	Before State
	// KnownUID is that of the last accepted cluster; empty if there was none.
	KnownUID string
	// Mistaken is set if its heartbeat has another cluster id than its credential.
	Mistaken bool
	// OtherSet is set if it is of another cluster set than the local cluster.
	OtherSet bool
	// Shrunk is when a list last lacked any known export, and Lost when a list lacked most of them (LostMost); zero if
	// none did, and again once they are back.
	Shrunk, Lost time.Time
	// Confirmed is the Verdict.Token that an administrator confirmed, or empty.
	Confirmed string
	// Drained asks for demotion on purpose.
	Drained bool
	// Path is the path to its pods.
	Path Path
}

// A Verdict is what follows for one member.
type Verdict struct {
	Cluster string
	State   State
	Reason  Reason
	// Demote asks for its endpoints to be used only where no other cluster has a ready one for the port. It is set for
	// a stale or drained member.
	Demote bool
	// Keep asks for its last accepted exports instead of the current ones.
	Keep bool
	// Token is what an administrator confirms to end a quarantine at once, or empty.
	Token string
}

// A Judgement is what follows for all members.
type Judgement struct {
	// Members are sorted by cluster.
	Members []Verdict
	// Isolated is set while no member is heard: the fault is probably local.
	Isolated bool
	// Next is when time alone may change the judgement; zero if it cannot. It may be early, never late.
	Next time.Time
}

// Of returns the verdict on a member. An unknown member is Fresh.
func (j Judgement) Of(cluster string) Verdict {
	i, found := slices.BinarySearchFunc(j.Members, cluster, func(v Verdict, cluster string) int {
		return cmp.Compare(v.Cluster, cluster)
	})
	if !found {
		return unknown(cluster)
	}
	return j.Members[i]
}

// LostMost reports whether so many exports are lost that a quarantine follows: all, or more than half of at least
// three.
func LostMost(before, after int) bool {
	return after == 0 && before > 0 || before >= 3 && 2*after < before
}

// Judge judges the members, in any order, by what was heard until now. The limits must be valid.
func Judge(now time.Time, limits Limits, members []Member) Judgement {
	here := surroundings{limits: limits, members: len(members)}
	here.look(now, members)
	judgement := Judgement{Isolated: here.alone}
	for _, member := range members {
		verdict, due := here.judge(now, member)
		judgement.Members = append(judgement.Members, verdict)
		judgement.Next = earlier(judgement.Next, due)
	}
	slices.SortFunc(judgement.Members, func(a, b Verdict) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return judgement
}

// surroundings are what a verdict depends on besides the facts of its member.
type surroundings struct {
	limits  Limits
	members int // their number
	// isolated are the times in which the local cluster was isolated; alone is set if the last one goes on.
	isolated []Silence
	alone    bool
}

// look determines when the local cluster was isolated. A heartbeat that arrives now ends it.
func (s *surroundings) look(now time.Time, members []Member) {
	s.isolated = isolation(now, s.limits, members)
	s.alone = len(s.isolated) > 0 && s.isolated[len(s.isolated)-1].Until.Equal(now) &&
		!slices.ContainsFunc(members, func(m Member) bool { return m.Arrivals.Last.Equal(now) })
}

// judge judges one member. Time alone may change its silence or the verdict when it is due; zero if it cannot.
func (s *surroundings) judge(now time.Time, member Member) (verdict Verdict, due time.Time) {
	from := member.Arrivals.silentFrom()
	silence := counted(Silence{from, now}, s.isolated)
	verdict = judge(s.limits, member, s.isolated, silence, s.alone)
	if s.alone {
		return verdict, due // only a heartbeat ends it
	}
	at := func(at time.Time) {
		if at.After(now) {
			due = earlier(due, at)
		}
	}
	if s.members > 1 {
		// The first moment of a silence may be the first of isolation.
		at(from.Add(s.limits.quiet() + 1))
	}
	at(now.Add(s.limits.StaleAfter - silence))
	if s.limits.GoneAfter != 0 {
		at(now.Add(s.limits.GoneAfter - silence))
	}
	return verdict, due
}

// earlier returns the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// judge judges one member that is silent for so long, as counted.
func judge(limits Limits, member Member, isolated []Silence, silence time.Duration, nobody bool) Verdict {
	verdict := Verdict{Cluster: member.Cluster}
	var before State
	if member.Arrivals.Last.IsZero() {
		before = member.Before
	}
	quarantined := verdict.quarantine(limits, member)
	switch {
	case limits.GoneAfter != 0 && (before == Gone || silence >= limits.GoneAfter):
		verdict.State, verdict.Reason = Gone, Silent
	case before != Fresh || silence >= limits.StaleAfter:
		verdict.State, verdict.Reason = Stale, Silent
	case quarantined != "":
		verdict.State, verdict.Reason = Stale, quarantined
	case flapping(limits, member.Arrivals, isolated):
		verdict.State, verdict.Reason = Stale, Flapping
	case member.Path == Unreachable:
		verdict.State, verdict.Reason = Stale, PodsUnreachable
	case nobody:
		verdict.Reason = AllMembersSilent
	case member.Path == Unproven:
		verdict.Reason = NoPodsReached
	case member.Arrivals.Last.IsZero():
		verdict.Reason = NotYetHeard
	default:
		verdict.Reason = Heard
	}
	verdict.Demote = verdict.State != Fresh || member.Drained
	return verdict
}

// quarantine sets Keep if the data of the member is not accepted, and returns the reason if that makes it stale.
func (v *Verdict) quarantine(limits Limits, member Member) Reason {
	arrivals := member.Arrivals
	long := quarantine * limits.StaleAfter
	another := member.KnownUID != "" && arrivals.UID != "" && arrivals.UID != member.KnownUID
	switch {
	case another && member.Confirmed != arrivals.UID && (member.Mistaken || !arrivals.steady(arrivals.Since, long)):
		v.Keep, v.Token = true, arrivals.UID
		return AnotherCluster
	case !another && member.Mistaken && member.KnownUID != "":
		// No token: an administrator corrects the id or removes the member.
		v.Keep = true
		return ClusterIDMismatch
	case member.OtherSet:
		// No token: an administrator corrects the set or removes the member.
		v.Keep = true
		return OtherClusterSet
	case !another && !member.Lost.IsZero() && member.Confirmed != tokenOf(member.Lost) &&
		!arrivals.steady(member.Lost, long):
		v.Keep, v.Token = true, tokenOf(member.Lost)
		return ExportsLost
	}
	if member.KnownUID == "" && member.Mistaken {
		v.Keep = true // it never had the id of its credential
		return ""
	}
	// The next heartbeat tells whether the list came from the known cluster.
	v.Keep = !arrivals.Looked.After(member.Shrunk) && !member.Shrunk.IsZero()
	return ""
}

// tokenOf names a list that lost most exports.
func tokenOf(lost time.Time) string { return lost.UTC().Format(time.RFC3339) }

// flapping reports whether the member failed repeatedly, and was not heard long enough since.
func flapping(limits Limits, arrivals Arrivals, isolated []Silence) bool {
	failed := 0
	var last time.Time
	for _, silence := range arrivals.Silences {
		if arrivals.Last.Sub(silence.Until) <= flapWindow*limits.StaleAfter &&
			counted(silence, isolated) >= limits.StaleAfter {
			failed++
			last = silence.Until
		}
	}
	return failed >= flaps && arrivals.Last.Sub(last) < settle*limits.StaleAfter
}

// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"cmp"
	"slices"
	"time"
)

// A State is what is believed of a member. The order is from best to worst.
type State int

// States of a member.
const (
	// Fresh: its word counts.
	Fresh State = iota
	// Stale: its endpoints are used only where no other cluster has a ready
	// one.
	Stale
	// Gone: it contributes nothing.
	Gone
)

// String returns the state in lower case.
func (s State) String() string { return [...]string{"fresh", "stale", "gone"}[s] }

// ParseState is the inverse of String. An unknown word is Fresh: it demotes
// nothing.
func ParseState(text string) State {
	for _, state := range []State{Stale, Gone} {
		if text == state.String() {
			return state
		}
	}
	return Fresh
}

// A Reason says why a member is in its state, in the form of a Condition's
// reason.
type Reason string

// Reasons of a state.
const (
	// Heard: its heartbeats arrive.
	Heard Reason = "Heard"
	// NotYetHeard: it joined less than StaleAfter ago.
	NotYetHeard Reason = "NotYetHeard"
	// AllMembersSilent: no member is heard, so this cluster suspects itself and
	// believes what it believed before.
	AllMembersSilent Reason = "AllMembersSilent"
	// Silent: no heartbeat arrived for too long.
	Silent Reason = "Silent"
	// Flapping: it failed three times or more of late, and has not stayed long
	// enough since.
	Flapping Reason = "Flapping"
	// AnotherCluster: the UID of its namespace kube-system is not the known one.
	AnotherCluster Reason = "AnotherCluster"
	// ClusterIDMismatch: it calls itself by another id than the one that it is
	// known by.
	ClusterIDMismatch Reason = "ClusterIDMismatch"
	// ExportsLost: most or all of its exports were gone in one list.
	ExportsLost Reason = "ExportsLost"
)

// A Member is what is known of one other cluster.
type Member struct {
	// Cluster is its id; no two members have the same.
	Cluster string
	// Arrivals are its heartbeats.
	Arrivals Arrivals
	// Before is the state that a predecessor of this process left. It counts
	// until the first heartbeat.
	Before State
	// KnownUID is that of the cluster which was believed last; empty where none
	// was.
	KnownUID string
	// Mistaken tells that the cluster calls itself by another id than the one
	// that it is known by.
	Mistaken bool
	// Shrunk is when a list last lacked any export that was known, and Lost when
	// one lacked most or all of them (LostMost); zero where none did, and again once
	// they are back.
	Shrunk, Lost time.Time
	// Confirmed is the token by which a person said that what the cluster says
	// is true: Verdict.Token. Empty where nobody did.
	Confirmed string
	// Drained asks for demotion on purpose.
	Drained bool
}

// A Verdict is what follows for one member.
type Verdict struct {
	Cluster string
	State   State
	Reason  Reason
	// Demote asks for its endpoints to be used only where no other cluster has
	// a ready one for the port. It is set for a member that is stale, and for
	// one that is drained.
	Demote bool
	// Keep asks for what was believed of its exports last, rather than what it
	// says now.
	Keep bool
	// Token is what a person confirms to have the member believed at once.
	// Empty where there is nothing to confirm.
	Token string
}

// A Judgement is what follows for all members.
type Judgement struct {
	// Members are sorted by cluster.
	Members []Verdict
	// Deaf is set where nobody is heard: this cluster suspects itself.
	Deaf bool
	// Next is when the judgement is due again if nothing is heard until then;
	// zero where time alone changes nothing. It may be early, never late.
	Next time.Time
}

// Of returns the verdict on a member. One that is not known is Fresh.
func (j Judgement) Of(cluster string) Verdict {
	i, found := slices.BinarySearchFunc(j.Members, cluster, func(v Verdict, cluster string) int { return cmp.Compare(v.Cluster, cluster) })
	if !found {
		return Verdict{Cluster: cluster, Reason: NotYetHeard}
	}
	return j.Members[i]
}

// LostMost tells whether so many exports are gone that it is not believed at
// once: all of them, or more than half of at least three.
func LostMost(before, after int) bool {
	return after == 0 && before > 0 || before >= 3 && 2*after < before
}

// Judge decides from what was heard until now. The limits are valid. It does
// not change the members, whose order means nothing.
func Judge(now time.Time, limits Limits, members []Member) Judgement {
	deaf := deafness(now, limits, members)
	judgement := Judgement{Deaf: len(deaf) > 0 && deaf[len(deaf)-1].Until.Equal(now)}
	due := func(at time.Time) {
		if at.After(now) && (judgement.Next.IsZero() || at.Before(judgement.Next)) {
			judgement.Next = at
		}
	}
	for _, member := range members {
		from := member.Arrivals.silentFrom()
		silence := counted(Silence{from, now}, deaf)
		judgement.Members = append(judgement.Members, judge(limits, member, deaf, silence, judgement.Deaf))
		if judgement.Deaf {
			continue // only a heartbeat ends it
		}
		if len(members) > 1 {
			// The first moment of a silence may be the first of deafness.
			due(from.Add(limits.quiet() + 1))
		}
		due(now.Add(limits.StaleAfter - silence))
		if limits.GoneAfter != 0 {
			due(now.Add(limits.GoneAfter - silence))
		}
	}
	slices.SortFunc(judgement.Members, func(a, b Verdict) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return judgement
}

// judge decides on one member that is silent for so long, as it counts.
func judge(limits Limits, member Member, deaf []Silence, silence time.Duration, nobody bool) Verdict {
	verdict := Verdict{Cluster: member.Cluster}
	var before State
	if member.Arrivals.Last.IsZero() {
		before = member.Before
	}
	held := verdict.hold(limits, member)
	switch {
	case limits.GoneAfter != 0 && (before == Gone || silence >= limits.GoneAfter):
		verdict.State, verdict.Reason = Gone, Silent
	case before != Fresh || silence >= limits.StaleAfter:
		verdict.State, verdict.Reason = Stale, Silent
	case held != "":
		verdict.State, verdict.Reason = Stale, held
	case flapping(limits, member.Arrivals, deaf):
		verdict.State, verdict.Reason = Stale, Flapping
	case nobody:
		verdict.Reason = AllMembersSilent
	case member.Arrivals.Last.IsZero():
		verdict.Reason = NotYetHeard
	default:
		verdict.Reason = Heard
	}
	verdict.Demote = verdict.State != Fresh || member.Drained
	return verdict
}

// hold decides whether what the member says is believed, and returns why not
// where that makes it stale.
func (v *Verdict) hold(limits Limits, member Member) Reason {
	arrivals := member.Arrivals
	long := hold * limits.StaleAfter
	another := member.KnownUID != "" && arrivals.UID != "" && arrivals.UID != member.KnownUID
	switch {
	case another && member.Confirmed != arrivals.UID && (member.Mistaken || !arrivals.steady(arrivals.Since, long)):
		v.Keep, v.Token = true, arrivals.UID
		return AnotherCluster
	case !another && member.Mistaken && member.KnownUID != "":
		// No token: the id is corrected, or the member leaves the set.
		v.Keep = true
		return ClusterIDMismatch
	case !another && !member.Lost.IsZero() && member.Confirmed != tokenOf(member.Lost) && !arrivals.steady(member.Lost, long):
		v.Keep, v.Token = true, tokenOf(member.Lost)
		return ExportsLost
	}
	if member.KnownUID == "" && member.Mistaken {
		v.Keep = true // it never was the one that it is said to be
		return ""
	}
	// Whether it is the known cluster that no longer exports something is not
	// told before its heartbeat was read again.
	v.Keep = !arrivals.Looked.After(member.Shrunk) && !member.Shrunk.IsZero()
	return ""
}

// tokenOf names a list that lost most exports.
func tokenOf(lost time.Time) string { return lost.UTC().Format(time.RFC3339) }

// flapping tells whether the member failed over and over, and has not stayed
// since.
func flapping(limits Limits, arrivals Arrivals, deaf []Silence) bool {
	failed := 0
	var last time.Time
	for _, silence := range arrivals.Silences {
		if arrivals.Last.Sub(silence.Until) <= flapWindow*limits.StaleAfter && counted(silence, deaf) >= limits.StaleAfter {
			failed++
			last = silence.Until
		}
	}
	return failed >= flaps && arrivals.Last.Sub(last) < settle*limits.StaleAfter
}

// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"slices"
	"time"
)

// A State of a member. The order is from best to worst.
type State int

// States of a member.
const (
	// Fresh: its data is used.
	Fresh State = iota
	// Stale: its endpoints are used only if no other cluster has a ready one.
	Stale
	// Gone: it contributes nothing.
	Gone
)

var states = []string{"fresh", "stale", "gone"}

// String returns the state in lower case.
func (s State) String() string { return states[s] }

// ParseState is the inverse of String. An unknown word is Fresh, which demotes nothing.
func ParseState(text string) State { return State(max(0, slices.Index(states, text))) }

// A Reason is why a member is in its state, in the form of a Condition's reason.
type Reason string

// Reasons of a state, which is in parentheses.
const (
	// Alive (fresh): its heartbeats arrive.
	Alive Reason = "Alive"
	// Joining (fresh): it joined less than --stale-after ago.
	Joining Reason = "Joining"
	// NoHeartbeat (stale, gone): no heartbeat arrived for --stale-after, or for --gone-after.
	NoHeartbeat Reason = "NoHeartbeat"
	// Flapping (stale): its heartbeats stopped at least three times recently, and are not stable yet.
	Flapping Reason = "Flapping"
	// PodsUnreachable (stale): connections to its pods fail (Unreachable).
	PodsUnreachable Reason = "PodsUnreachable"
	// AnotherCluster (stale): the UID of its namespace kube-system is not the known one.
	AnotherCluster Reason = "AnotherCluster"
	// ClusterIDMismatch (stale): its heartbeat has another cluster id than its credential.
	ClusterIDMismatch Reason = "ClusterIDMismatch"
	// OtherClusterSet (stale): its ClusterProperty clusterset.k8s.io differs from the local one.
	OtherClusterSet Reason = "OtherClusterSet"
	// ExportsLost (stale): most or all of its exports were missing from one list.
	ExportsLost Reason = "ExportsLost"
)

// A Member has the facts about one other cluster.
type Member struct {
	// Cluster is its id; no two members have the same.
	Cluster string
	// Arrivals are its heartbeats.
	Arrivals Arrivals
	// Before is the state that the previous leader recorded. It counts until the first heartbeat.
	Before State
	// KnownUID is the UID of the last accepted cluster; empty if there was none.
	KnownUID string
	// Mistaken is set if its heartbeat has another cluster id than its credential.
	Mistaken bool
	// OtherSet is set if it is of another cluster set than the local cluster.
	OtherSet bool
	// ListedUID is the UID of the cluster that was listed last; empty if it had no heartbeat.
	ListedUID string
	// Shrunk is when the last list lacked any known export, zero if it lacked none. Lost is when a list first lacked most of
	// them (LostMost), zero once they are back or the loss is accepted.
	Shrunk, Lost time.Time
	// Confirmed is the Verdict.Token that an administrator confirmed, or empty.
	Confirmed string
	// Drained is set if the member or an administrator drains it.
	Drained bool
	// Path is the path to its pods.
	Path Path
	probes
}

// A Verdict is the judgement of one member.
type Verdict struct {
	Cluster string
	State   State
	Reason  Reason
	// Demote asks for its endpoints to be used only if no other cluster has a ready one for the port. It is set for a stale or
	// drained member.
	Demote bool
	// Keep asks for its last accepted exports instead of the current ones.
	Keep bool
	// Token is the value with which an administrator ends a quarantine at once, or empty.
	Token string
}

// NoMember is the verdict on a cluster that is no member.
func NoMember(cluster string) Verdict { return Verdict{Cluster: cluster, Reason: Joining} }

// LostMost reports whether so many exports are lost that a quarantine follows: all, or more than half of at least
// three.
func LostMost(before, after int) bool {
	return after == 0 && before > 0 || before >= 3 && 2*after < before
}

// Judge judges a member by the facts known now. The limits must be valid. A demotion is relative: it takes no endpoint away
// unless another cluster has a ready one. So it does not matter whether the fault is local.
func Judge(now time.Time, limits Limits, member Member) Verdict {
	verdict := Verdict{Cluster: member.Cluster}
	var before State
	if member.Arrivals.Last.IsZero() {
		before = member.Before
	}
	quarantined := verdict.quarantine(limits, member)
	switch {
	case limits.GoneAfter != 0 && (before == Gone || member.Arrivals.Missed >= limits.GoneAfter):
		verdict.State, verdict.Reason = Gone, NoHeartbeat
	case before != Fresh || now.Sub(member.Arrivals.gapFrom()) >= limits.StaleAfter:
		verdict.State, verdict.Reason = Stale, NoHeartbeat
	case quarantined != "":
		verdict.State, verdict.Reason = Stale, quarantined
	case member.Arrivals.flapping(limits):
		verdict.State, verdict.Reason = Stale, Flapping
	case member.Path == Unreachable:
		verdict.State, verdict.Reason = Stale, PodsUnreachable
	case member.Arrivals.Last.IsZero():
		verdict.Reason = Joining
	default:
		verdict.Reason = Alive
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
	case member.Mistaken:
		// No token: an administrator corrects the id or the credential, or removes the member.
		v.Keep = true
		return ClusterIDMismatch
	case another && member.Confirmed != arrivals.UID && !arrivals.steady(arrivals.Since, long):
		v.Keep, v.Token = true, arrivals.UID
		return AnotherCluster
	case member.OtherSet:
		// No token: an administrator corrects the set or removes the member.
		v.Keep = true
		return OtherClusterSet
	case !another && !member.Lost.IsZero() && member.Confirmed != tokenOf(member.Lost) &&
		!arrivals.steady(member.Lost, long):
		v.Keep, v.Token = true, tokenOf(member.Lost)
		return ExportsLost
	}
	// The next heartbeat shows whose list it is, unless it comes from another cluster than the list, on an older connection.
	v.Keep = !arrivals.Looked.After(member.Shrunk) && !member.Shrunk.IsZero() ||
		member.ListedUID != "" && arrivals.UID != "" && member.ListedUID != arrivals.UID
	return ""
}

// tokenOf names a list that lost most exports.
func tokenOf(lost time.Time) string { return lost.UTC().Format(time.RFC3339) }

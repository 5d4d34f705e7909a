// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"slices"
	"time"
)

// Arrivals are a member's heartbeats. Seen and Received return new Arrivals; only Tick changes them.
type Arrivals struct {
	// Last is when the last heartbeat arrived; zero if none did.
	Last time.Time
	// Looked is when the heartbeat Lease was last read; zero if never. The first read identifies the cluster. It does
	// not prove that the cluster is alive, because the Lease may be old.
	Looked time.Time
	// UID is the last known UID of the namespace kube-system, or empty, and Since is when this UID was first read.
	UID   string
	Since time.Time
	// Missed is how much of the time since the last heartbeat counts as a failure of the member: see Tick.
	Missed time.Duration
	// Steady is when listening began, or when the last gap ended. A gap is longer than two heartbeat intervals.
	Steady time.Time
	// Failures are the ends of gaps in which Missed reached StaleAfter.
	Failures Failures
}

// Seen returns the Arrivals after a read of a Lease with a UID, which may be old.
func (a Arrivals) Seen(at time.Time, uid string) Arrivals {
	a.Looked = at
	if uid != "" && uid != a.UID {
		a.UID, a.Since = uid, at
	}
	return a
}

// Received returns the Arrivals after a heartbeat with a UID arrived.
func (a Arrivals) Received(at time.Time, uid string, limits Limits) Arrivals {
	a = a.Seen(at, uid)
	if from := a.gapFrom(); at.Sub(from) > quiet {
		a.Steady = at
		if a.Missed >= limits.StaleAfter {
			a.Failures = a.Failures.And(at)
		}
	}
	a.Last, a.Missed = at, 0
	return a
}

// gapFrom returns when the current gap began, if there is one.
func (a Arrivals) gapFrom() time.Time {
	if a.Last.IsZero() {
		return a.Steady
	}
	return a.Last
}

// steady reports whether heartbeats arrived without a gap for at least long, all of it later than after. The time since the
// last heartbeat does not count, because it proves nothing.
func (a Arrivals) steady(after time.Time, long time.Duration) bool {
	return !a.Last.IsZero() && a.Last.Sub(after) >= long && a.Last.Sub(a.Steady) >= long
}

// flapping reports whether the member failed repeatedly, and heartbeats have not arrived for long enough since the last failure.
func (a Arrivals) flapping(limits Limits) bool {
	return len(a.Failures) > 0 && a.Failures.Flapping(a.Last, a.Failures[len(a.Failures)-1], limits)
}

// Tick adds the time that passed to Missed of all members, unless there are several and all have a gap: then the fault is
// probably local, which is no reason to remove members, nor to mistrust them later.
func Tick(now time.Time, passed time.Duration, members []*Arrivals) {
	gap := func(a *Arrivals) bool { return a.Last.IsZero() || now.Sub(a.Last) > quiet }
	if len(members) > 1 && !slices.ContainsFunc(members, func(a *Arrivals) bool { return !gap(a) }) {
		return
	}
	for _, a := range members {
		a.Missed += passed
	}
}

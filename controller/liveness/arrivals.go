// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"slices"
	"time"
)

// remembered is how many silences of a member are kept.
const remembered = 16

// A Silence is a time in which no heartbeat of a member arrived.
type Silence struct{ From, Until time.Time }

// Arrivals are what is remembered of a member's heartbeats. A value of it is
// never changed: Seen and Heard return another.
type Arrivals struct {
	// Joined is when listening began. It is always set.
	Joined time.Time
	// Last is when a heartbeat arrived last, zero where none ever did.
	Last time.Time
	// Looked is when the Lease of the heartbeat was read last, zero where it
	// never was. A Lease that is read for the first time may be old: it says
	// who the cluster is, and not that it is alive.
	Looked time.Time
	// UID is that of the namespace kube-system as last read, and Since when it
	// was read for the first time in a row. Empty where it was never told.
	UID   string
	Since time.Time
	// Silences are those that ended, the latest 16, oldest first. Each is
	// longer than two heartbeat intervals.
	Silences []Silence
}

// Seen is what is remembered after the Lease was read at a time, with that UID
// in it, and it is not known whether it is new.
func (a Arrivals) Seen(at time.Time, uid string) Arrivals {
	if at.Before(a.Looked) {
		return a
	}
	a.Looked = at
	if uid != "" && uid != a.UID {
		a.UID, a.Since = uid, at
	}
	return a
}

// Heard is what is remembered after a heartbeat arrived at a time, with that
// UID in it. One that is older than the last adds nothing.
func (a Arrivals) Heard(at time.Time, uid string, limits Limits) Arrivals {
	if at.Before(a.silentFrom()) {
		return a
	}
	a = a.Seen(at, uid)
	if from := a.silentFrom(); at.Sub(from) > limits.quiet() {
		a.Silences = append(slices.Clone(a.Silences), Silence{from, at})
		a.Silences = a.Silences[max(0, len(a.Silences)-remembered):]
	}
	a.Last = at
	return a
}

// silentFrom is when a silence began if there is one now.
func (a Arrivals) silentFrom() time.Time {
	if a.Last.IsZero() {
		return a.Joined
	}
	return a.Last
}

// steadyFrom is since when the member is heard without a silence.
func (a Arrivals) steadyFrom() time.Time {
	if len(a.Silences) == 0 {
		return a.Joined
	}
	return a.Silences[len(a.Silences)-1].Until
}

// steady tells whether the member was heard without a silence for a time after
// a moment. Only arrivals count: the time since the last one proves nothing.
func (a Arrivals) steady(after time.Time, long time.Duration) bool {
	if from := a.steadyFrom(); from.After(after) {
		after = from
	}
	return !a.Last.IsZero() && a.Last.Sub(after) >= long
}

// silences are those that ended and the one that lasts.
func (a Arrivals) silences(now time.Time, limits Limits) []Silence {
	if from := a.silentFrom(); now.Sub(from) > limits.quiet() {
		return append(slices.Clone(a.Silences), Silence{from, now})
	}
	return a.Silences
}

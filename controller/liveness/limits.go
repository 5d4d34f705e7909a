// SPDX-License-Identifier: Apache-2.0

// Package liveness judges which member clusters are alive, by heartbeats, which are reachable, by probes, and which of their
// slices count. It is pure. The rules are documented in docs/design.md.
package liveness

import (
	"fmt"
	"slices"
	"time"
)

// HeartbeatInterval is the time between two heartbeats of a healthy member.
const HeartbeatInterval = 5 * time.Second

// Limits are set by the administrator. All other times are multiples of them and of HeartbeatInterval.
type Limits struct {
	// StaleAfter is how long a member may send no heartbeat before its endpoints are demoted. At least four heartbeat intervals.
	StaleAfter time.Duration
	// GoneAfter is how long a member may send no heartbeat before its contribution is removed. 0 means forever;
	// otherwise it is longer than StaleAfter.
	GoneAfter time.Duration
}

// All other times are derived, so that two flags are enough.
const (
	// quiet is the longest time between two heartbeats that is not a gap: one heartbeat may be late.
	quiet = 2 * HeartbeatInterval
	// leastIntervals is the minimum of StaleAfter: gaps of members that begin together differ by up to one interval, a gap is
	// recognized after two, and one is a margin.
	leastIntervals = 4
	// flaps failures within flapWindow make a member flapping.
	flaps      = 3
	flapWindow = 20 // times StaleAfter
	// settle is how long heartbeats of a flapping member must arrive without another failure before it is fresh again.
	settle = 2 // times StaleAfter
	// quarantine is how long heartbeats of a member that changed its identity, or lost most of its exports, must
	// arrive without a gap before its data is accepted.
	quarantine = 10 // times StaleAfter
)

// Validate returns an error that names an invalid limit and its valid values.
func (l Limits) Validate() error {
	switch {
	case l.StaleAfter < leastIntervals*HeartbeatInterval:
		return fmt.Errorf("--stale-after %s: use %s or more, %d heartbeats", l.StaleAfter, leastIntervals*HeartbeatInterval,
			leastIntervals)
	case l.GoneAfter != 0 && l.GoneAfter <= l.StaleAfter:
		return fmt.Errorf("--gone-after %s: use 0 for never, or more than the %s after which a member is stale",
			l.GoneAfter, l.StaleAfter)
	}
	return nil
}

// Failures are the last times at which contact with a member failed, oldest first. They are immutable.
type Failures []time.Time

// And returns the Failures with another one, at most the last three.
func (f Failures) And(at time.Time) Failures {
	return append(slices.Clone(f[max(0, len(f)-flaps+1):]), at)
}

// Flapping reports whether contact failed repeatedly until now, and was not steady for long enough since.
func (f Failures) Flapping(now, steady time.Time, limits Limits) bool {
	return len(f) == flaps && now.Sub(f[0]) <= flapWindow*limits.StaleAfter && now.Sub(steady) < settle*limits.StaleAfter
}

// SPDX-License-Identifier: Apache-2.0

// Package liveness judges from the heartbeats that arrived, and those that did
// not, which member clusters are alive.
//
// It is pure: times go in and judgements come out, the same for the same facts
// in any order. docs/design/liveness.md says what is decided and why.
package liveness

import (
	"fmt"
	"time"
)

// Limits are the operator's patience. All that this package waits for is a
// multiple of these.
type Limits struct {
	// Interval is the time between two heartbeats of a healthy member.
	Interval time.Duration
	// StaleAfter is how long a member may be silent before its endpoints are
	// demoted. At least four intervals.
	StaleAfter time.Duration
	// GoneAfter is how long a member may be silent before its contribution is
	// removed. 0 means for ever; else it is longer than StaleAfter.
	GoneAfter time.Duration
}

// The rest is derived, so that two flags are all there is to set.
const (
	// quietIntervals without a heartbeat are a silence: one may be late.
	quietIntervals = 2
	// leastIntervals is what StaleAfter must have at least: those that fall
	// silent with us differ by a phase of one interval, the silence is
	// recognised after two, and one is left over.
	leastIntervals = 4
	// flaps failures within flapWindow make a member one that flaps.
	flaps      = 3
	flapWindow = 20 // times StaleAfter
	// settle is how long a member that flaps has to be heard without another
	// failure before it is trusted again.
	settle = 2 // times StaleAfter
	// hold is how long a member that came back as another, or lost most of its
	// exports, has to be heard without any silence before that is believed.
	hold = 10 // times StaleAfter
)

// Validate returns an error that says which limit is wrong and what it could
// be.
func (l Limits) Validate() error {
	switch {
	case l.Interval <= 0:
		return fmt.Errorf("heartbeat interval %s: it must be positive", l.Interval)
	case l.StaleAfter < leastIntervals*l.Interval:
		return fmt.Errorf("stale after %s: use %s or more, %d heartbeats", l.StaleAfter, leastIntervals*l.Interval, leastIntervals)
	case l.GoneAfter != 0 && l.GoneAfter <= l.StaleAfter:
		return fmt.Errorf("gone after %s: use 0 for never, or more than the %s after which a member is stale", l.GoneAfter, l.StaleAfter)
	}
	return nil
}

// quiet is the longest time between two heartbeats that is no silence.
func (l Limits) quiet() time.Duration { return quietIntervals * l.Interval }

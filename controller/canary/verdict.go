// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"net/netip"
	"time"
)

// An Outcome of a probe of a canary (docs/design.md).
type Outcome int

// Outcomes of a probe.
const (
	// Impaired: the other end refused the connection, or made it and did not answer as it should. The path to it is
	// whole. A canary that restarts or starves does that, too, and so does one that others keep busy. If the prober itself
	// was late, nothing is known of the path.
	Impaired Outcome = iota
	// Answered: the whole answer came in time.
	Answered
	// Unanswered: no connection in time.
	Unanswered
)

// A Probe is one connection to a canary of a member.
type Probe struct {
	Cluster string
	Canary  netip.AddrPort
	// Began and Ended are by the local clock.
	Began, Ended time.Time
	Outcome      Outcome
}

// inARow is how many unanswered probes cut a canary that answered before, and how many answers end that.
const inARow = 3

// A verdict is what the probes of one canary have shown.
type verdict struct {
	zone string
	// answered is set once it answered, and cut while it counts as not reached.
	answered, cut bool
	// The numbers of probes in a row that were answered, and without any connection.
	answers, unanswered int
	// firstBegan is when the first probe of the latter began.
	firstBegan time.Time
}

// probed takes the result of a probe. A lone canary may be a lone pod that restarts.
func (v *verdict) probed(p Probe, lone bool, staleAfter time.Duration) {
	switch p.Outcome {
	case Impaired:
		v.answers, v.unanswered = 0, 0
	case Answered:
		v.answered = true
		v.answers++
		v.unanswered = 0
		if v.answers >= inARow {
			v.cut = false
		}
	case Unanswered:
		if v.unanswered == 0 {
			v.firstBegan = p.Began
		}
		v.answers = 0
		v.unanswered++
		quickly := v.answered && !lone
		if v.unanswered >= inARow && (quickly || p.Ended.Sub(v.firstBegan) >= staleAfter) {
			v.cut = true
		}
	}
}

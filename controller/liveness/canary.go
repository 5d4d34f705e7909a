// SPDX-License-Identifier: Apache-2.0

package liveness

import "time"

// An Outcome of a probe of a canary (docs/design/path.md).
type Outcome int

// Outcomes of a probe.
const (
	// Void: the prober itself was late, so that the probe shows nothing.
	Void Outcome = iota
	// Answered: the whole answer came in time.
	Answered
	// Impaired: the other end refused the connection, or made it and did not answer as it should. The path to it is
	// whole. A canary that restarts or starves does that, too, and so does one that others keep busy.
	Impaired
	// Unanswered: no connection in time.
	Unanswered
)

// A Probe is one connection to a canary of a member.
type Probe struct {
	Cluster, Canary string
	// Began and Ended are by the local clock.
	Began, Ended time.Time
	Outcome      Outcome
}

// doubt is how long a canary that stopped answering is probed more often: long enough for a verdict.
const doubt = 4 * time.Second

// inARow is how many unanswered probes cut a canary that answered before, and how many answers end that.
const inARow = 3

// A canary is what the probes of one canary have shown.
type canary struct {
	// answered is set once it answered, and cut while it counts as not reached.
	answered, cut bool
	// The numbers of probes in a row that were answered, and without any connection.
	answers, unanswered int
	// firstBegan is when the first probe of the latter began.
	firstBegan time.Time
}

// doubtful reports whether a canary stopped answering a moment before a probe of it ended.
func (c *canary) doubtful(p Probe) bool {
	return c.answered && c.unanswered > 0 && p.Ended.Sub(c.firstBegan) < doubt
}

// probed takes the result of a probe. A lone canary may be a lone pod that restarts.
func (c *canary) probed(p Probe, lone bool, staleAfter time.Duration) {
	switch p.Outcome {
	case Void:
		c.unanswered = 0
	case Impaired:
		c.answers, c.unanswered = 0, 0
	case Answered:
		c.answered = true
		c.answers++
		c.unanswered = 0
		if c.answers >= inARow {
			c.cut = false
		}
	case Unanswered:
		if c.unanswered == 0 {
			c.firstBegan = p.Began
		}
		c.answers = 0
		c.unanswered++
		quickly := c.answered && !lone
		if c.unanswered >= inARow && (quickly || p.Ended.Sub(c.firstBegan) >= staleAfter) {
			c.cut = true
		}
	}
}

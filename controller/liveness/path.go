// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// A Path tells whether connections from the local cluster reach the pods of a member.
type Path string

// Paths to a member: Unknown if it has no probe target or none answered yet, Unreachable if most of its probe targets are not
// reached.
const (
	Unknown     Path = ""
	Reachable   Path = "reachable"
	Unreachable Path = "unreachable"
)

// String returns the path as users see it.
func (p Path) String() string { return cmp.Or(string(p), "unknown") }

// An Outcome of a probe of a probe target (docs/design.md).
type Outcome int

// Outcomes of a probe.
const (
	// Impaired: the probe target refused the connection, or accepted it and did not answer correctly. The path works; the probe
	// target may be restarting, starved or busy. A probe during which the prober itself was late is impaired, too: it shows
	// nothing about the path.
	Impaired Outcome = iota
	// Answered: the whole answer came in time.
	Answered
	// Unanswered: no connection in time.
	Unanswered
)

// A Probe is one connection to a probe target of a member.
type Probe struct {
	Target netip.AddrPort
	// Began and Ended are by the local clock.
	Began, Ended time.Time
	Outcome      Outcome
}

// inARow is how many unanswered probes make a probe target that answered before fail, and how many answers end that.
const inARow = 3

// A ProbedTarget is a probe target, a pod of a member that answers probes, with the results of its probes.
type ProbedTarget struct {
	Address netip.AddrPort
	// Fails is set while it counts as not reached.
	Fails bool
	// answered is set once it answered.
	answered bool
	// The numbers of consecutive probes that were Answered, and Unanswered.
	answers, unanswered int
	// firstBegan is when the first of the unanswered probes began.
	firstBegan time.Time
}

// probed records the result of a probe. A lone probe target fails only after staleAfter: it may be a single pod that restarts.
func (w *ProbedTarget) probed(p Probe, lone bool, staleAfter time.Duration) {
	switch p.Outcome {
	case Impaired:
		w.answers, w.unanswered = 0, 0
	case Answered:
		w.answered = true
		w.answers++
		w.unanswered = 0
		if w.answers >= inARow {
			w.Fails = false
		}
	case Unanswered:
		if w.unanswered == 0 {
			w.firstBegan = p.Began
		}
		w.answers = 0
		w.unanswered++
		quickly := w.answered && !lone
		if w.unanswered >= inARow && (quickly || p.Ended.Sub(w.firstBegan) >= staleAfter) {
			w.Fails = true
		}
	}
}

// probes are the facts by which the Path of a member is judged.
type probes struct {
	// ProbedTargets are the probe targets that it offered last. The list is immutable.
	ProbedTargets []ProbedTarget
	// cuts are the last times at which the Path became Unreachable. It does not matter whether the fault was local: see Judge.
	cuts Failures
	// steady is since when at least half of the probe targets are reached; zero while they are not.
	steady time.Time
}

// Offered sets the probe targets of the member; the list has no duplicates. The path to a member that offers none is forgotten.
func (m *Member) Offered(targets []netip.AddrPort) {
	if len(targets) == 0 {
		m.Path, m.probes = Unknown, probes{}
		return
	}
	known := m.ProbedTargets
	m.ProbedTargets = make([]ProbedTarget, len(targets))
	for i, each := range targets {
		m.ProbedTargets[i] = ProbedTarget{Address: each, Fails: m.Path == Unreachable} // a new one proves nothing yet, in either direction
		if at := indexOf(known, each); at >= 0 {
			m.ProbedTargets[i] = known[at]
		}
	}
}

// A Request is a probe to make: the address of a probe target, with the key that only members of the cluster set know.
type Request struct {
	Cluster string
	Address netip.AddrPort
	Key     string
}

func indexOf(all []ProbedTarget, target netip.AddrPort) int {
	return slices.IndexFunc(all, func(w ProbedTarget) bool { return w.Address == target })
}

// Probed records the result of a probe. It ignores a probe target that the member does not offer. Pass the probes of a probe
// target in the order in which they ended.
func (m *Member) Probed(p Probe, limits Limits) {
	at := indexOf(m.ProbedTargets, p.Target)
	if at < 0 {
		return
	}
	m.ProbedTargets = slices.Clone(m.ProbedTargets)
	m.ProbedTargets[at].probed(p, len(m.ProbedTargets) == 1, limits.StaleAfter)
	cut := 0
	for _, each := range m.ProbedTargets {
		if each.Fails {
			cut++
		}
	}
	most := 2*cut > len(m.ProbedTargets)
	switch {
	case most:
		m.steady = time.Time{}
	case m.steady.IsZero():
		m.steady = p.Ended
	}
	switch {
	case m.Path == Unknown && p.Outcome != Answered:
	case m.Path == Unreachable && (most || m.cuts.Flapping(p.Ended, m.steady, limits)):
	case most:
		m.Path, m.cuts = Unreachable, m.cuts.And(p.Ended)
	default:
		m.Path = Reachable
	}
}

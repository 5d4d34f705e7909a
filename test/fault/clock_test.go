// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterset-dns/clusterset-dns/controller"
)

// A pair is a controller that hears another's heartbeat.
type pair struct{ reader, writer *cluster }

// secret is the name of the Secret by which the reader has its member.
func (p pair) secret() string { return "member-" + p.writer.Name() }

// everyPair is all that there are.
func (b *bed) everyPair() []pair {
	var pairs []pair
	for _, reader := range b.all() {
		for _, writer := range b.all() {
			if reader != writer {
				pairs = append(pairs, pair{reader, writer})
			}
		}
	}
	return pairs
}

// pairs are those whose reader runs, without the given ones.
func (b *bed) pairs(without ...pair) []pair {
	return slices.DeleteFunc(b.everyPair(), func(p pair) bool { return p.reader.stop == nil || slices.Contains(without, p) })
}

// heard is when a controller, by its clock, heard another.
type heard struct {
	by *prometheus.Registry // of the controller that heard it
	at time.Time
}

// age is how long ago, by the reader's clock, it heard the writer.
func (p pair) age() (time.Duration, error) {
	metric, err := p.reader.metric("clusterset_controller_member_heartbeat_age_seconds", map[string]string{"cluster": p.writer.Name()})
	if err != nil {
		return 0, err
	}
	if metric == nil {
		return 0, fmt.Errorf("%s never heard %s", p.reader.Name(), p.writer.Name())
	}
	age := time.Duration(metric.GetGauge().GetValue() * float64(time.Second))
	p.reader.hears[p.writer] = heard{p.reader.options.Registry, p.reader.clock.Now().Add(-age)}
	return age, nil
}

// lately tells whether it is known already that the reader heard the writer no
// longer ago than what is overdue. To ask its metrics takes much longer.
func (p pair) lately() bool {
	last, ok := p.reader.hears[p.writer]
	return ok && last.by == p.reader.options.Registry && p.reader.clock.Since(last.at) <= overdue
}

// The pace of the clocks. Time moves on by a tick once each of the pairs that
// live has heard its heartbeat: one is due after 5 s, so that 8 s are no
// silence yet, and leave room for one that is under way. A timer that was set
// late is due later than that: time moves on for it after a moment, and not for
// so long that a slow machine makes a silence of it.
const (
	tick    = time.Second
	overdue = 8 * time.Second
	moment  = 500 * time.Millisecond
	extra   = 15
	// What is stuck for so long after that had its renewal given up, and needs a tick to try again.
	longMoment = 5 * time.Second
	last       = 5
	// A breath is left to the controllers in each tick, so that what was sent
	// before it is not read long after it, and a longer one where a heartbeat was
	// heard: whoever sent it has to set its timer for the next one.
	breath, longBreath = time.Millisecond, 10 * time.Millisecond
)

// step moves all clocks on by a tick.
func (b *bed) step() {
	for _, c := range b.all() {
		c.clock.Step(tick)
	}
}

// tick is step once the pairs that live kept up. Time does not move on beyond the end, if there is one: where that is reached first, those
// that live may be late.
func (b *bed) tick(live []pair, end time.Time) {
	b.Helper()
	ended := func() bool { return !end.IsZero() && !b.east.clock.Now().Before(end) }
	left, pause := extra+last, breath
	for _, p := range live {
		if p.lately() {
			continue
		}
		pause = longBreath
		stuck := time.NewTicker(moment)
		b.eventually(p.reader.Name()+" hears "+p.writer.Name(), func(context.Context) error {
			age, err := p.age()
			if err == nil && age > overdue {
				err = fmt.Errorf("the last heartbeat is %s old", age)
			}
			if err == nil || ended() {
				return nil
			}
			select {
			case <-stuck.C:
				if left > 0 {
					b.step()
					left--
				}
				if left == last {
					stuck.Reset(longMoment)
				}
			default:
			}
			return err
		})
		stuck.Stop()
	}
	<-time.After(pause)
	if !ended() {
		b.step()
	}
}

// pass moves all clocks on for so long, and no longer, while those pairs live.
func (b *bed) pass(d time.Duration, live ...pair) {
	b.Helper()
	// All clocks move alike. What tick moves them on for a late timer counts.
	for end := b.east.clock.Now().Add(d); b.east.clock.Now().Before(end); {
		b.tick(live, end)
	}
}

// falls is pass until all the others are silent: a heartbeat of theirs may have
// been on its way when it began, or some that a way held back.
func (b *bed) falls(d time.Duration, live ...pair) {
	b.Helper()
	b.pass(d, live...)
	for _, p := range b.pairs(live...) {
		for range int(overdue / tick) {
			age, err := p.age()
			// What was no fault of the writer is not counted in the reader's judgement.
			if state, _ := p.state(); err != nil || age > controller.DefaultStaleAfter && state != "Heard" {
				break
			}
			b.tick(live, time.Time{})
		}
	}
}

// beat moves the clocks on until each of the pairs is heard.
func (b *bed) beat(pairs ...pair) {
	b.Helper()
	for _, p := range pairs {
		b.comesToBe(p, "Heard")
	}
}

// comesToBe moves the clocks on until the reader judges the writer so.
func (b *bed) comesToBe(p pair, reason string) {
	b.Helper()
	deadline := time.After(patience)
	for {
		state, err := p.state()
		if err == nil && state == reason {
			return
		}
		select {
		case <-deadline:
			b.Fatalf("%s does not judge %s %s within %s: it is %q, %v", p.reader.Name(), p.writer.Name(), reason, patience, state, err)
		case <-time.After(20 * time.Millisecond):
			b.patiently()
		}
	}
}

// patiently is step once all who are heard kept up, or a moment later: one of
// them may be away without that it is known yet.
func (b *bed) patiently() {
	b.Helper()
	deadline := time.After(moment)
	for _, p := range b.pairs() {
		for !p.lately() {
			state, _ := p.state()
			age, err := p.age()
			if state != "Heard" || err != nil || age <= overdue {
				break
			}
			select {
			case <-deadline:
				b.step()
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	b.step()
}

// state is the reason for the state of the writer in the eyes of the reader.
func (p pair) state() (string, error) {
	families, err := p.reader.options.Registry.Gather()
	if err != nil {
		return "", err
	}
	for _, family := range families {
		if family.GetName() != "clusterset_controller_member_state" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := labelsOf(metric)
			if labels["cluster"] == p.writer.Name() {
				return labels["reason"], nil
			}
		}
	}
	return "", nil
}

// judged waits until the reader judges the writer so. No clock moves.
func (b *bed) judged(p pair, reason string) {
	b.Helper()
	b.eventually(p.reader.Name()+" judges "+p.writer.Name()+" "+reason, func(context.Context) error {
		state, err := p.state()
		if err == nil && state != reason {
			err = fmt.Errorf("it is %q", state)
		}
		return err
	})
}

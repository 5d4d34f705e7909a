// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/hmac"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

const (
	// interval is the time between two probes of a probe target, and atMost how many probes begin in that time: with more probe
	// targets, the time grows.
	interval = 750 * time.Millisecond
	atMost   = 192
	// connectWithin is how long a connection may take, and answerWithin the whole probe.
	connectWithin = 750 * time.Millisecond
	answerWithin  = 2 * time.Second
	// If timers are late by more than lateBy in total during a probe, the process is starved. A goroutine checks that each
	// pulse.
	lateBy = 200 * time.Millisecond
	pulse  = 50 * time.Millisecond
)

// A Prober probes the members.
type Prober struct {
	// Requests returns the probe targets to probe in a stable order. It is called once for each round of probes.
	Requests func() []liveness.Request
	// Probed is called with the result of each probe.
	Probed func(cluster string, probe liveness.Probe)
	// Dial connects to a probe target; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// late is the total lateness of the timers of watch, and looked is the time from began until watch last set its timer. Both
	// are in nanoseconds.
	late, looked atomic.Int64
	began        time.Time
}

// Run probes until the context ends. It may be called once.
func (p *Prober) Run(ctx context.Context) {
	p.began = time.Now()
	if p.Dial == nil {
		p.Dial = (&net.Dialer{}).DialContext
	}
	var probes sync.WaitGroup
	defer probes.Wait()
	probes.Go(func() { p.watch(ctx) })
	for next := time.Now(); ctx.Err() == nil; {
		requests := p.Requests()
		if len(requests) == 0 {
			pause(ctx, interval)
		}
		for _, each := range requests {
			probes.Go(func() {
				if probed := p.probe(ctx, each); ctx.Err() == nil {
					p.Probed(each.Cluster, probed)
				}
			})
			gap := max(interval/time.Duration(len(requests)), interval/atMost)
			// The jitter of the gaps lets probers drift apart, and does not change their mean.
			next = next.Add(gap)
			pause(ctx, time.Until(next)+time.Duration((rand.Float64()-0.5)*0.2*float64(gap)))
		}
		if time.Since(next) >= interval { // there was nothing to probe, or the process was starved
			next = time.Now()
		}
	}
}

// watch notes how late its timers are, until the context ends.
func (p *Prober) watch(ctx context.Context) {
	for ctx.Err() == nil {
		p.looked.Store(int64(time.Since(p.began)))
		pause(ctx, pulse)
		p.late.Add(max(0, int64(time.Since(p.began)-pulse)-p.looked.Load()))
	}
}

// lateness returns how late the timers of watch were until now.
func (p *Prober) lateness() time.Duration {
	current := int64(time.Since(p.began)-pulse) - p.looked.Load()
	return time.Duration(p.late.Load() + max(0, current))
}

// probe probes one probe target.
func (p *Prober) probe(ctx context.Context, t liveness.Request) liveness.Probe {
	began, lateness := time.Now(), p.lateness()
	outcome := p.connect(ctx, began, t)
	ended := time.Now()
	if outcome != liveness.Answered && (ended.Sub(began) > answerWithin+lateBy ||
		outcome == liveness.Unanswered && ended.Sub(began) > connectWithin+lateBy ||
		p.lateness()-lateness > lateBy) {
		outcome = liveness.Impaired
	}
	return liveness.Probe{Target: t.Address, Began: began, Ended: ended, Outcome: outcome}
}

// connect returns the outcome of one connection.
func (p *Prober) connect(ctx context.Context, began time.Time, t liveness.Request) liveness.Outcome {
	connecting, cancel := context.WithDeadline(ctx, began.Add(connectWithin))
	defer cancel()
	conn, err := p.Dial(connecting, "tcp", t.Address.String())
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE): // nothing was sent
		return liveness.Impaired
	case err != nil:
		return liveness.Unanswered
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if lingering, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = lingering.SetLinger(0) // a reset ends the connection, and no table keeps it
	}
	_ = conn.SetDeadline(began.Add(answerWithin)) // if it fails, the calls below fail
	asked, answer := asking(), make([]byte, size)
	if _, err := conn.Write(asked); err != nil {
		return liveness.Impaired
	}
	if _, err := io.ReadFull(conn, answer); err != nil || !hmac.Equal(answer, answerOf(t.Cluster, t.Key, asked)) {
		return liveness.Impaired
	}
	return liveness.Answered
}

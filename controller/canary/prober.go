// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"cmp"
	"context"
	"crypto/hmac"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

const (
	// interval is the time between two probes of a canary, and atMost how many connections are opened in it: above, it
	// grows.
	interval = time.Second
	atMost   = 256
	// hurried is the interval for a moment after a probe that Tracker.Probed calls for.
	hurried = interval / 2
	moment  = time.Second
	// connectWithin is how long a connection may take, and answerWithin the whole probe.
	connectWithin = 750 * time.Millisecond
	answerWithin  = 2 * time.Second
	// Timers that are late by more than lateBy during a probe, all together, show that the process is starved. One
	// goroutine looks each pulse.
	lateBy = 200 * time.Millisecond
	pulse  = 50 * time.Millisecond
	// forgetAfter is how long a member may offer no canary before its path is forgotten: its replicas may all be unready
	// for a moment.
	forgetAfter = 30 * time.Second
)

// A Member is another cluster with canaries.
type Member interface {
	Cluster() string
	// Canaries returns the text of its canaries as in its last heartbeat, and whether a heartbeat was read.
	Canaries() (text string, read bool)
	// CanaryKey returns the Key of the cluster as in its last heartbeat.
	CanaryKey() string
	// CIDRs are the ranges of its pods. Other addresses are not probed, and none without CIDRs: readers of a hostile
	// member would connect to whatever it names.
	CIDRs() []netip.Prefix
}

// A Tracker judges by probes. Its methods must not block.
type Tracker interface {
	// Offer replaces the canaries of a member.
	Offer(cluster string, canaries []Canary)
	// Probed is called after each probe, in the order in which those of a canary ended. It reports whether the next
	// probes decide on a path, so that they should follow sooner.
	Probed(liveness.Probe) (doubtful bool)
}

// A Prober probes the canaries of the members.
type Prober struct {
	// Members returns the members, which must be comparable. It is called once for each round of probes.
	Members func() []Member
	Tracker Tracker
	// Dial connects to a canary; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// offered are the canaries of each member. Only Run uses them.
	offered map[string]offer
	// late is how late the timers of watch were, all together, and looked when watch last looked, since began. Both are
	// in nanoseconds.
	late, looked atomic.Int64
	// hurry is until when probes follow sooner, in nanoseconds since began.
	hurry atomic.Int64
	began time.Time
}

// An offer is what a member offered last.
type offer struct {
	member   Member // another one if it left and joined again
	text     string
	cidrs    []netip.Prefix
	canaries []Canary
	// empty is since when there are none, and forgotten is set once the Tracker knows.
	empty     time.Time
	forgotten bool
}

// A target is a canary of a member, with its Key.
type target struct{ cluster, canary, key string }

// Run probes until the context ends. It may be called once.
func (p *Prober) Run(ctx context.Context) {
	p.offered, p.began = map[string]offer{}, time.Now()
	if p.Dial == nil {
		p.Dial = (&net.Dialer{}).DialContext
	}
	var probes sync.WaitGroup
	defer probes.Wait()
	for next := time.Now(); ctx.Err() == nil; {
		targets := p.targets(ctx)
		if len(targets) == 0 {
			pause(ctx, interval)
			next = time.Now()
			continue
		}
		watching, stop := context.WithCancel(ctx)
		probes.Go(func() { p.watch(watching) })
		for _, each := range targets {
			probes.Go(func() { p.probe(ctx, each) })
			gap := p.gap(len(targets))
			// The mean of the gaps is kept, and their jitter lets probers drift apart.
			next = next.Add(gap)
			pause(ctx, time.Until(next)+time.Duration((rand.Float64()-0.5)*0.2*float64(gap)))
		}
		stop()
		if behind := time.Since(next); behind > interval {
			next = time.Now()
		}
	}
}

// targets returns the canaries of all members in a stable order, and tells the Tracker what changed.
func (p *Prober) targets(ctx context.Context) (targets []target) {
	members := p.Members()
	present := make(map[string]bool, len(members))
	for _, m := range members {
		cluster := m.Cluster()
		present[cluster] = true
		text, read := m.Canaries()
		if !read {
			continue
		}
		is, known := p.offered[cluster]
		if cidrs := m.CIDRs(); !known || is.member != m || is.text != text || !slices.Equal(is.cidrs, cidrs) {
			is = offer{member: m, text: text, cidrs: cidrs, canaries: p.accept(ctx, cluster, text, cidrs)}
			if len(is.canaries) > 0 {
				p.Tracker.Offer(cluster, is.canaries)
			} else {
				is.empty = time.Now()
			}
			p.offered[cluster] = is
		}
		if len(is.canaries) == 0 && !is.forgotten && time.Since(is.empty) >= forgetAfter {
			is.forgotten = true
			p.offered[cluster] = is
			p.Tracker.Offer(cluster, nil)
		}
		for _, each := range is.canaries {
			targets = append(targets, target{cluster, each.Address.String(), m.CanaryKey()})
		}
	}
	for cluster := range p.offered {
		if !present[cluster] {
			delete(p.offered, cluster)
		}
	}
	// The probes of one member are spread over the interval.
	slices.SortFunc(targets, func(a, b target) int { return cmp.Compare(a.canary, b.canary) })
	return targets
}

// accept returns the canaries in a text that a member may have.
func (p *Prober) accept(ctx context.Context, cluster, text string, cidrs []netip.Prefix) []Canary {
	canaries, err := Decode(text)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Ignored the canaries of a member, which is not probed", "member", cluster)
		return nil
	}
	return slices.DeleteFunc(canaries, func(c Canary) bool {
		return !slices.ContainsFunc(cidrs, func(prefix netip.Prefix) bool {
			return prefix.Contains(c.Address.Addr())
		})
	})
}

// gap returns the time between two probes of so many canaries.
func (p *Prober) gap(canaries int) time.Duration {
	long := interval
	if int64(time.Since(p.began)) < p.hurry.Load() {
		long = hurried
	}
	return max(long/time.Duration(canaries), interval/atMost)
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

// probe probes one canary, and tells the Tracker unless the context ended.
func (p *Prober) probe(ctx context.Context, t target) {
	began, lateness := time.Now(), p.lateness()
	outcome := p.connect(ctx, began, t)
	ended := time.Now()
	if outcome != liveness.Answered && (ended.Sub(began) > answerWithin+lateBy ||
		outcome == liveness.Unanswered && ended.Sub(began) > connectWithin+lateBy ||
		p.lateness()-lateness > lateBy) {
		outcome = liveness.Void
	}
	if ctx.Err() == nil && p.Tracker.Probed(liveness.Probe{
		Cluster: t.cluster, Canary: t.canary, Began: began, Ended: ended, Outcome: outcome,
	}) {
		p.hurry.Store(int64(time.Since(p.began) + moment))
	}
}

// connect returns the outcome of one connection.
func (p *Prober) connect(ctx context.Context, began time.Time, t target) liveness.Outcome {
	connecting, cancel := context.WithDeadline(ctx, began.Add(connectWithin))
	defer cancel()
	conn, err := p.Dial(connecting, "tcp", t.canary)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return liveness.Impaired
	case err != nil:
		return liveness.Unanswered
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if lingering, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = lingering.SetLinger(0) // a reset ends the connection, and no table keeps it
	}
	asked, answer := asking(), make([]byte, size)
	if conn.SetDeadline(began.Add(answerWithin)) != nil {
		return liveness.Impaired
	}
	if _, err := conn.Write(asked); err != nil {
		return liveness.Impaired
	}
	if _, err := io.ReadFull(conn, answer); err != nil || !hmac.Equal(answer, answerOf(t.cluster, t.key, asked)) {
		return liveness.Impaired
	}
	return liveness.Answered
}

// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"sync"
	"time"
)

// Patience is for how long nobody acts on what is known while something is not
// read again, since anything was. It is a little more than the longest time
// between two tries.
const Patience = 7 * time.Second

// Longest is for how long nobody acts in all, where watches end again and again
// before their time, as behind a proxy that cuts them. Then all is acted on for
// Patience as it is known, and waited for again.
const Longest = time.Minute

// A Group is informers whose objects are looked at together. After an outage
// some of them are read again before the others: a Service that came back with
// the EndpointSlices of before would make an export that never was. So whoever
// acts on what a Group knows waits until all of it is read again, or Patience
// or Longest is over.
//
// An informer is behind from when a request of it fails, or its watch ends
// before its time, until all of its objects were listed again, or its watch,
// after the API server was too busy for it, goes on. One that was never read is
// none that could be behind. The zero value is ready for use; it is safe
// for concurrent use.
type Group struct {
	mu     sync.Mutex
	behind map[*Informer]time.Time // since when
	// since is from when on is waited, and due is until when.
	since, due time.Time
	// reading counts how often one that was behind was read again.
	reading int
	// caughtUp is closed once nothing is behind; nil while nobody waits.
	caughtUp chan struct{}
}

// A Reading is a state of a Group in which nothing that is known of before an
// outage was combined with anything of after it.
type Reading int

// Wait returns once nothing is behind, or has been for too long, or the context
// ends.
func (g *Group) Wait(ctx context.Context) Reading {
	for {
		g.mu.Lock()
		reading, left := Reading(g.reading), time.Until(g.due)
		if len(g.behind) == 0 || left <= 0 || ctx.Err() != nil {
			g.mu.Unlock()
			return reading
		}
		if g.caughtUp == nil {
			g.caughtUp = make(chan struct{})
		}
		caughtUp := g.caughtUp
		g.mu.Unlock()
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
		case <-caughtUp:
		case <-timer.C: // something else may have been read meanwhile
		}
		timer.Stop()
	}
}

// Holds tells whether what was looked at since Wait returned belongs together.
func (g *Group) Holds(reading Reading) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Reading(g.reading) == reading
}

// Late returns the resource of an informer that was behind for at least so
// long, of those that exports depend on; empty if there is none.
func (g *Group) Late(longer time.Duration) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, since := range g.behind {
		if i.options.Exports && time.Since(since) >= longer {
			return i.options.Resource
		}
	}
	return ""
}

// fails notes that an informer which was read can be read no longer.
func (g *Group) fails(i *Informer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.behind[i]; known {
		return
	}
	if g.behind == nil {
		g.behind = map[*Informer]time.Time{}
	}
	g.behind[i] = time.Now()
	g.extend()
}

// begins notes that an informer was read again, before anybody can see what
// was read.
func (g *Group) begins(i *Informer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.behind[i]; known {
		g.reading++
		g.extend()
	}
}

// extend sets until when to wait.
func (g *Group) extend() {
	now, last := time.Now(), g.since.Add(Longest)
	if !g.due.Before(last) && now.Before(last.Add(Patience)) {
		return
	}
	if !now.Before(g.due) {
		g.since, last = now, now.Add(Longest)
	}
	if g.due = now.Add(Patience); g.due.After(last) {
		g.due = last
	}
}

// ends notes that all can see it, or that nobody needs the informer any more.
func (g *Group) ends(i *Informer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.behind, i)
	if len(g.behind) == 0 && g.caughtUp != nil {
		close(g.caughtUp)
		g.caughtUp = nil
	}
}

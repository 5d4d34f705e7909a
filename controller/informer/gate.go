// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"sync"
	"time"
)

// Patience is how long Wait waits for an informer that is behind, since an informer last caught up. It is a little more
// than the longest backoff.
const Patience = 7 * time.Second

// Longest is how long Wait waits in all while watches break again and again, as behind a proxy that cuts them. Then
// Wait returns at once for Patience.
const Longest = time.Minute

// A FreshnessGate holds back reconciles while some of its informers are behind. After an outage some informers list
// before others: a new Service with the EndpointSlices from before the outage would make an export that never existed.
//
// An informer is behind from a failed request or a broken watch until its objects were listed again, or until its watch
// was opened again after 429. An informer that never listed is not behind. The zero value is ready for use. It is safe
// for concurrent use.
type FreshnessGate struct {
	mu     sync.Mutex
	behind map[*Informer]time.Time // since when
	// waitStart and waitDeadline bound the current wait.
	waitStart, waitDeadline time.Time
	// reading counts how often an informer that was behind listed.
	reading int
	// caughtUp is closed once no informer is behind; nil without waiters.
	caughtUp chan struct{}
}

// A Reading is a time in which no informer that was behind caught up.
type Reading int

// Wait returns once no informer is behind, or after Patience or Longest, or when the context ends.
func (g *FreshnessGate) Wait(ctx context.Context) Reading {
	for {
		g.mu.Lock()
		reading, left := Reading(g.reading), time.Until(g.waitDeadline)
		if len(g.behind) == 0 || left <= 0 || ctx.Err() != nil {
			g.mu.Unlock()
			return reading
		}
		caughtUp := g.waiters()
		g.mu.Unlock()
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
		case <-caughtUp:
		case <-timer.C: // the deadline may have moved
		}
		timer.Stop()
	}
}

// WaitForAll returns true once no informer is behind, however long that takes, or false if the context ends before.
func (g *FreshnessGate) WaitForAll(ctx context.Context) bool {
	g.mu.Lock()
	caughtUp := g.waiters()
	g.mu.Unlock()
	select {
	case <-ctx.Done():
		return false
	case <-caughtUp:
		return true
	}
}

// waiters returns a channel that is closed once no informer is behind. The caller holds the lock.
func (g *FreshnessGate) waiters() <-chan struct{} {
	if g.caughtUp == nil {
		g.caughtUp = make(chan struct{})
	}
	caughtUp := g.caughtUp
	if len(g.behind) == 0 {
		close(g.caughtUp)
		g.caughtUp = nil
	}
	return caughtUp
}

// Holds reports whether the objects that were read since Wait returned belong together.
func (g *FreshnessGate) Holds(reading Reading) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Reading(g.reading) == reading
}

// Late returns the resource of an informer that exports depend on and that was behind for at least so long; empty if
// there is none.
func (g *FreshnessGate) Late(longer time.Duration) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, since := range g.behind {
		if i.options.Exports && time.Since(since) >= longer {
			return i.options.Resource
		}
	}
	return ""
}

// fails notes that an informer is behind.
func (g *FreshnessGate) fails(i *Informer) {
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

// begins notes that an informer listed again, before its cache shows the list.
func (g *FreshnessGate) begins(i *Informer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.behind[i]; known {
		g.reading++
		g.extend()
	}
}

// extend moves the deadline.
func (g *FreshnessGate) extend() {
	now, last := time.Now(), g.waitStart.Add(Longest)
	if !g.waitDeadline.Before(last) && now.Before(last.Add(Patience)) {
		return
	}
	if !now.Before(g.waitDeadline) {
		g.waitStart, last = now, now.Add(Longest)
	}
	if g.waitDeadline = now.Add(Patience); g.waitDeadline.After(last) {
		g.waitDeadline = last
	}
}

// ends notes that the cache shows the list, or that the informer stopped.
func (g *FreshnessGate) ends(i *Informer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.behind, i)
	if len(g.behind) == 0 && g.caughtUp != nil {
		close(g.caughtUp)
		g.caughtUp = nil
	}
}

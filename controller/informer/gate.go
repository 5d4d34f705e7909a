// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// patience is how long Wait waits after an informer last fell behind, began to catch up or caught up. It is a little more
	// than the longest backoff.
	patience = 7 * time.Second
	// longest bounds Wait while informers fall behind again and again.
	longest = time.Minute
	// poll is how often Wait looks.
	poll = 100 * time.Millisecond
)

// A FreshnessGate holds back reconciles while some of its informers are behind. After an outage some informers list
// before others: a new Service with the EndpointSlices from before the outage would make an export that never existed.
//
// An informer is behind from a failed request until its objects were listed again. An informer that never listed is not behind.
// The zero value is ready for use. It is safe for concurrent use.
type FreshnessGate struct {
	mu     sync.Mutex
	behind map[*Informer]time.Time // since when
	// changed is when an informer last fell behind, began to catch up or caught up.
	changed time.Time
}

// Wait returns once no informer is behind, or 7 s after an informer last fell behind, began to catch up or caught up, or after
// a minute, or when the context ends.
func (g *FreshnessGate) Wait(ctx context.Context) {
	_ = wait.PollUntilContextTimeout(ctx, poll, longest, true, func(context.Context) (bool, error) { return !g.holds(), nil })
}

// Current reports whether no informer is behind.
func (g *FreshnessGate) Current() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.behind) == 0
}

// holds reports whether Wait waits.
func (g *FreshnessGate) holds() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.behind) > 0 && time.Since(g.changed) < patience
}

// Late returns the resource of an informer on which exports depend, and which has been behind for at least longer; empty if
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

// set notes whether an informer is behind.
func (g *FreshnessGate) set(i *Informer, behind bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.behind[i]; known == behind {
		return
	}
	g.changed = time.Now()
	if !behind {
		delete(g.behind, i)
		return
	}
	if g.behind == nil {
		g.behind = map[*Informer]time.Time{}
	}
	g.behind[i] = g.changed
}

// moves notes that the cache of an informer, which may be behind, is about to change.
func (g *FreshnessGate) moves() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.changed = time.Now()
}

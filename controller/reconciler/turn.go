// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// large is from which size on, in encoded form, the slices of a service count as large. They take about ten times as much
// once they are decoded.
const large = 256 << 10

// A turn is held while a large service is reconciled, so that the memory that passes need is bounded. The others wait
// without a worker: while one waits, the turn is held, or the first of them is in the queue. It is safe for concurrent
// use.
type turn struct {
	mu      sync.Mutex
	held    bool
	waiting []types.NamespacedName
}

// take takes the turn for a service. It returns false if another one has it; the service then waits.
func (t *turn) take(service types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := slices.Index(t.waiting, service)
	switch {
	case t.held && at < 0:
		t.waiting = append(t.waiting, service)
	case !t.held && at >= 0:
		t.waiting = slices.Delete(t.waiting, at, at+1)
	}
	taken := !t.held
	t.held = true
	return taken
}

// next returns the first service that waits, which does so no more, if the turn is free. ends says that it ends now.
func (t *turn) next(ends bool) (service types.NamespacedName, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held = t.held && !ends; t.held || len(t.waiting) == 0 {
		return service, false
	}
	service, t.waiting = t.waiting[0], t.waiting[1:]
	return service, true
}

func (t *turn) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}

// takeTurn reports whether everything of a service may be reconciled now; endTurn is to be called after that. Otherwise
// the service waits for the turn.
func (r *Reconciler) takeTurn(service types.NamespacedName) (_ bool, endTurn func()) {
	if r.Encoded(service) < large {
		return true, func() { r.nextTurn(false) } // it may have been large when it was the first that waited
	}
	if r.turn.take(service) {
		return true, func() { r.nextTurn(true) }
	}
	r.queue.note(service, "", all)
	return false, nil
}

// nextTurn enqueues the next large service.
func (r *Reconciler) nextTurn(ends bool) {
	if service, found := r.turn.next(ends); found {
		r.queue.Add(service)
	}
}

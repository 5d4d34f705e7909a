// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// While writes of a namespace hang, at most slowAtOnce services that failed slowly and othersAtOnce other ones of such
// namespaces, for which the first heartbeat may wait, are reconciled at once. One of eight workers is left for other
// namespaces, and one turn of each kind for another namespace in which a write failed slowly.
const (
	slowly       = time.Second
	slowAtOnce   = 3
	othersAtOnce = 4
)

// hungFor is how long a namespace counts as hung after a slow failure: until a pass has ended that waits for its backoff and hangs.
const hungFor = 2 * passWithin

// turns bound the services that are reconciled at once while writes hang. They are safe for concurrent use.
type turns struct {
	mu sync.Mutex
	// slow has the services whose last reconcile failed slowly, and hung when that last happened in a namespace.
	slow map[types.NamespacedName]bool
	hung map[string]time.Time
	// taken counts the turns of other services and of slow ones, by namespace and, with no name, in all.
	taken [2]map[string]int
}

func newTurns() *turns {
	return &turns{
		slow: map[types.NamespacedName]bool{}, hung: map[string]time.Time{}, taken: [2]map[string]int{{}, {}},
	}
}

// take returns the function that ends a turn of a service, nil if it has to wait for one.
func (t *turns) take(service types.NamespacedName) (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken, most := t.taken[0], othersAtOnce
	switch at, hung := t.hung[service.Namespace]; {
	case t.slow[service]:
		taken, most = t.taken[1], slowAtOnce
	case !hung:
		return func() {}
	case time.Since(at) > hungFor: // a service that fails quickly or not at all proves nothing
		delete(t.hung, service.Namespace)
		return func() {}
	}
	if taken[""] == most || taken[service.Namespace] == most-1 {
		return nil
	}
	taken[""]++
	taken[service.Namespace]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		taken[""]--
		if taken[service.Namespace]--; taken[service.Namespace] == 0 {
			delete(taken, service.Namespace)
		}
	}
}

// note notes whether a reconcile of a service failed slowly.
func (t *turns) note(service types.NamespacedName, slow bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slow {
		delete(t.slow, service)
		return
	}
	t.slow[service], t.hung[service.Namespace] = true, time.Now()
}

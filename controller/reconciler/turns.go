// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// atOnce is the maximum number of services of one namespace that are reconciled at once: less than half of the workers, so that
// two namespaces whose writes hang in a webhook leave workers for others.
const atOnce = 5

// turns bound the services that are reconciled at once, of each namespace or of all large ones. They are safe for concurrent use.
type turns struct {
	mu sync.Mutex
	// taken counts the turns, and waiting has the services that need one, by namespace, empty for large services.
	taken   map[string]int
	waiting map[string][]types.NamespacedName
}

func newTurns() *turns {
	return &turns{taken: map[string]int{}, waiting: map[string][]types.NamespacedName{}}
}

// take reports whether a service has a turn, of which there are most. If not, next returns it later.
func (t *turns) take(share string, most int, service types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken[share] == most {
		t.waiting[share] = append(t.waiting[share], service)
		return false
	}
	t.taken[share]++
	return true
}

// next passes a turn on to the service that has waited for the longest time. It reports false, and ends the
// turn, if none waits.
func (t *turns) next(share string) (service types.NamespacedName, has bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if waiting := t.waiting[share]; len(waiting) > 0 {
		t.waiting[share] = waiting[1:]
		return waiting[0], true
	}
	delete(t.waiting, share)
	if t.taken[share]--; t.taken[share] == 0 {
		delete(t.taken, share)
	}
	return types.NamespacedName{}, false
}

// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// atOnce is the maximum number of services of one namespace that are reconciled at once: less than half of the workers, so that
// two namespaces whose writes hang in a webhook leave workers for others.
const atOnce = 5

// turns bound the services of each namespace that are reconciled at once. They are safe for concurrent use.
type turns struct {
	mu sync.Mutex
	// taken counts the turns, and waiting has the services that need one, by namespace.
	taken   map[string]int
	waiting map[string][]types.NamespacedName
}

func newTurns() *turns {
	return &turns{taken: map[string]int{}, waiting: map[string][]types.NamespacedName{}}
}

// take reports whether a service has a turn. If not, next returns it later.
func (t *turns) take(service types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken[service.Namespace] == atOnce {
		t.waiting[service.Namespace] = append(t.waiting[service.Namespace], service)
		return false
	}
	t.taken[service.Namespace]++
	return true
}

// next passes a turn on to the service of the namespace that has waited for the longest time. It reports false, and ends the turn,
// if none waits.
func (t *turns) next(namespace string) (service types.NamespacedName, has bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if waiting := t.waiting[namespace]; len(waiting) > 0 {
		t.waiting[namespace] = waiting[1:]
		return waiting[0], true
	}
	delete(t.waiting, namespace)
	if t.taken[namespace]--; t.taken[namespace] == 0 {
		delete(t.taken, namespace)
	}
	return types.NamespacedName{}, false
}

// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
)

// echoes recognize the events that only show what the last pass over a service wrote: they cause no pass, because each change
// would take two. An echo that is not recognized costs a pass that writes nothing. They are safe for concurrent use.
type echoes struct {
	mu sync.Mutex
	// seen has what events have shown since the running pass over each service began. A watch often shows a write before
	// the API server answers it.
	seen map[types.NamespacedName]sets.Set[apply.Version]
	// written has what the last pass over each service wrote and no event has shown.
	written map[types.NamespacedName]sets.Set[apply.Version]
}

func newEchoes() *echoes {
	return &echoes{
		seen: map[types.NamespacedName]sets.Set[apply.Version]{}, written: map[types.NamespacedName]sets.Set[apply.Version]{},
	}
}

// begins notes that a pass over a service is about to read the caches. They may be stale, so that the event of an earlier
// write must cause the next pass.
func (e *echoes) begins(service types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.written, service)
	e.seen[service] = sets.Set[apply.Version]{}
}

// ends notes what a pass wrote, and reports whether an event since begins makes the service due.
func (e *echoes) ends(service types.NamespacedName, written sets.Set[apply.Version]) (due bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	seen := e.seen[service]
	delete(e.seen, service)
	if rest := written.Difference(seen); rest.Len() > 0 {
		e.written[service] = rest
	}
	return !written.IsSuperset(seen)
}

// sees notes that an event shows a version of an object of a service, and reports whether the service is due: not for an
// echo. While a pass runs, ends decides.
func (e *echoes) sees(service types.NamespacedName, shown apply.Version) (due bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if seen, runs := e.seen[service]; runs {
		seen.Insert(shown)
		return false
	}
	written := e.written[service]
	due = !written.Has(shown)
	if written.Delete(shown); written.Len() == 0 {
		delete(e.written, service)
	}
	return due
}

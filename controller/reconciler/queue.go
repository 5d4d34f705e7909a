// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// Backoff of a service whose reconciliation failed.
const (
	backoffBase = 5 * time.Millisecond
	backoffCap  = 30 * time.Second
)

// Bounds of how often a service is reconciled: each pass is followed by a rest of restTimes what the pass took, of at least
// restAtLeast and at most restAtMost, because a pass may have waited for the API server. So a service that changes all the
// time has ten passes a second at most, and a fifth of a worker.
const (
	restTimes   = 4
	restAtLeast = 100 * time.Millisecond
	restAtMost  = time.Second
)

// Bounds of the passes that other writers cause, so that no two writers revert each other's changes without a pause: a
// service has othersAtOnce of them in each othersWindow, and later ones wait for othersDelay.
const (
	othersAtOnce = 100
	othersWindow = 5 * time.Minute
	othersDelay  = 30 * time.Second
)

// A queue holds each service to reconcile once. The first change of a service in a while is due at once, and those that
// come while it rests are reconciled together. It is safe for concurrent use.
type queue struct {
	workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu sync.Mutex
	// rests are until when services rest.
	rests map[types.NamespacedName]time.Time
	// purged is the number of rests after the last purge.
	purged int
	// others are the passes that other writers caused in the current othersWindow, which began at since.
	others map[types.NamespacedName]caused
	since  time.Time
}

type caused struct {
	passes int
	last   time.Time
}

func newQueue() *queue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](backoffBase, backoffCap)
	return &queue{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(limiter),
		rests:                      map[types.NamespacedName]time.Time{},
		others:                     map[types.NamespacedName]caused{},
		since:                      time.Now(),
	}
}

// AddNow adds a service without its rest: its last pass made another pass due. That counts as in AddOthers.
func (q *queue) AddNow(service types.NamespacedName) {
	q.wake(service)
	q.AddOthers(service)
}

// Retry adds a service that does not rest, without the backoff of failures.
func (q *queue) Retry(service types.NamespacedName) {
	q.Forget(service)
	q.wake(service)
	q.Add(service)
}

func (q *queue) wake(service types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.rests, service)
}

// AddOthers adds a service of which another writer changed an object.
func (q *queue) AddOthers(service types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if now.Sub(q.since) >= othersWindow {
		clear(q.others)
		q.since = now
	}
	of := q.others[service]
	if now.Sub(of.last) >= restAtLeast { // earlier changes belong to the same pass
		of = caused{of.passes + 1, now}
	}
	q.others[service] = of
	if of.passes > othersAtOnce {
		q.AddAfter(service, othersDelay)
	} else {
		q.Add(service)
	}
}

// Get returns the next service that does not rest.
func (q *queue) Get() (service types.NamespacedName, shutdown bool) {
	for {
		service, shutdown = q.TypedRateLimitingInterface.Get()
		if shutdown {
			return service, true
		}
		rest := q.rest(service)
		if rest <= 0 || q.ShuttingDown() {
			return service, false
		}
		q.AddAfter(service, rest)
		q.Done(service)
	}
}

func (q *queue) rest(service types.NamespacedName) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return time.Until(q.rests[service])
}

// Rest ends a pass over a service, which took so long. It is followed by Done.
func (q *queue) Rest(service types.NamespacedName, took time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.rests[service] = now.Add(min(restAtMost, max(restAtLeast, restTimes*took)))
	if len(q.rests) > 2*max(q.purged, 512) {
		maps.DeleteFunc(q.rests, func(_ types.NamespacedName, until time.Time) bool { return until.Before(now) })
		q.purged = len(q.rests)
	}
}

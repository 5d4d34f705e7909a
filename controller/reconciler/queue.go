// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
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

// Bounds of how often a service is reconciled: after each pass, the service rests for restTimes the duration of the pass,
// at least restAtLeast, and at most restAtMost because a pass may have waited for the API server. So a service that
// changes constantly has at most ten passes a second, and a fifth of a worker.
const (
	restTimes   = 4
	restAtLeast = 100 * time.Millisecond
	restAtMost  = time.Second
)

// Bounds of the passes that AddLimited causes, so that no two writers revert each other's changes without a pause: a
// service has limitedAtOnce such passes in each limitedWindow, and later ones wait for limitedDelay.
const (
	limitedAtOnce = 100
	limitedWindow = 5 * time.Minute
	limitedDelay  = 30 * time.Second
)

// A queue holds each service to reconcile once. The first change of a service in a while is due at once, and changes
// while it rests are reconciled together. It is safe for concurrent use.
type queue struct {
	workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu sync.Mutex
	// limited counts the passes that AddLimited caused in the current limitedWindow, which began at since; zero before the first.
	limited map[types.NamespacedName]caused
	since   time.Time
}

type caused struct {
	passes int
	last   time.Time
}

func newQueue() *queue {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](backoffBase, backoffCap)
	return &queue{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(limiter),
		limited:                    map[types.NamespacedName]caused{},
	}
}

// AddLimited adds a service for a pass that other writers, or the answers to own writes, may cause without end.
func (q *queue) AddLimited(service types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if now.Sub(q.since) >= limitedWindow {
		clear(q.limited)
		q.since = now
	}
	of := q.limited[service]
	if now.Sub(of.last) >= restAtLeast { // earlier changes belong to the same pass
		of = caused{of.passes + 1, now}
	}
	q.limited[service] = of
	if of.passes > limitedAtOnce {
		q.AddAfter(service, limitedDelay)
	} else {
		q.Add(service)
	}
}

// Rest ends a pass over a service after a rest. A service that is added meanwhile waits until then.
func (q *queue) Rest(service types.NamespacedName, rest time.Duration) {
	if rest == 0 { // a timer would crash the race detector in tests on virtual time: golang/go#78156
		q.Done(service)
		return
	}
	time.AfterFunc(rest, func() { q.Done(service) })
}

// restAfter returns how long a service rests after a pass of a duration.
func restAfter(took time.Duration) time.Duration {
	return min(restAtMost, max(restAtLeast, restTimes*took))
}

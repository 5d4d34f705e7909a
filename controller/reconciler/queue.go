// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// Backoff of a service whose reconciliation failed.
const (
	backoffBase = 5 * time.Millisecond
	backoffCap  = 30 * time.Second
)

// A writer recognizes its own writes.
type writer interface {
	// Echo reports whether a cache shows no more of an object than the writer wrote.
	Echo(service types.NamespacedName, shown metav1.Object) bool
	// CaughtUp reports whether the caches show what the writer wrote.
	CaughtUp(service types.NamespacedName) bool
}

// A queue holds each service to reconcile once. It skips a service that is due only because the caches show what this
// process wrote: each write was decided with its outcome in mind. It is safe for concurrent use.
type queue struct {
	workqueue.TypedRateLimitingInterface[types.NamespacedName]
	writer writer

	mu sync.Mutex
	// shown are the objects because of which a service is due, empty if the caches may be behind; nil if it is due for
	// another reason.
	shown map[types.NamespacedName][]metav1.Object
}

func newQueue(writer writer) *queue {
	return &queue{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](backoffBase, backoffCap)),
		writer: writer,
		shown:  map[types.NamespacedName][]metav1.Object{},
	}
}

// Add adds a service that is due.
func (q *queue) Add(service types.NamespacedName) {
	q.due(service)
	q.TypedRateLimitingInterface.Add(service)
}

// AddAfter adds a service after some time.
func (q *queue) AddAfter(service types.NamespacedName, after time.Duration) {
	q.due(service)
	q.TypedRateLimitingInterface.AddAfter(service, after)
}

// AddRateLimited adds a service after its backoff.
func (q *queue) AddRateLimited(service types.NamespacedName) {
	q.due(service)
	q.TypedRateLimitingInterface.AddRateLimited(service)
}

func (q *queue) due(service types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shown[service] = nil
}

// AddShown adds a service because a cache shows an object in this state.
func (q *queue) AddShown(service types.NamespacedName, object metav1.Object) {
	q.mu.Lock()
	if shown, known := q.shown[service]; !known || shown != nil {
		q.shown[service] = append(shown, object)
	}
	q.mu.Unlock()
	q.TypedRateLimitingInterface.Add(service)
}

// AddBehind adds a service of which the caches may not show what was written.
func (q *queue) AddBehind(service types.NamespacedName) {
	q.mu.Lock()
	if _, known := q.shown[service]; !known {
		q.shown[service] = []metav1.Object{}
	}
	q.mu.Unlock()
	q.TypedRateLimitingInterface.Add(service)
}

// Get waits for a service that is due. The caller passes it to Done.
func (q *queue) Get() (service types.NamespacedName, shutdown bool) {
	for {
		service, shutdown = q.TypedRateLimitingInterface.Get()
		if shutdown || !q.onlyEchoes(service) {
			return service, shutdown
		}
		q.Done(service)
	}
}

// Retry adds a service regardless of its backoff.
func (q *queue) Retry(service types.NamespacedName) {
	q.Forget(service)
	q.Add(service)
}

func (q *queue) onlyEchoes(service types.NamespacedName) bool {
	q.mu.Lock()
	shown := q.shown[service]
	delete(q.shown, service)
	q.mu.Unlock()
	if shown == nil {
		return false
	}
	only := len(shown) > 0 || q.writer.CaughtUp(service)
	for _, object := range shown {
		only = q.writer.Echo(service, object) && only
	}
	return only
}

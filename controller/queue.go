// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// A queue holds each service that is to be reconciled once, and knows no delay
// but the back-off of those that fail. A service that is due only because the
// caches show what this process wrote is skipped: each write was decided with its
// outcome in mind. It is safe for concurrent use.
type queue struct {
	workqueue.TypedRateLimitingInterface[types.NamespacedName]
	// echo reports whether the caches show no more than an own write.
	echo func(types.NamespacedName, metav1.Object) bool

	mu sync.Mutex
	// shown are the objects because of which a service is due, nil if it is due
	// anyway.
	shown map[types.NamespacedName][]metav1.Object
}

func newQueue(echo func(types.NamespacedName, metav1.Object) bool) *queue {
	return &queue{
		TypedRateLimitingInterface: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](backoffBase, backoffCap)),
		echo:  echo,
		shown: map[types.NamespacedName][]metav1.Object{},
	}
}

// Add adds a service that is due.
func (q *queue) Add(service types.NamespacedName) {
	q.due(service)
	q.TypedRateLimitingInterface.Add(service)
}

// AddAfter adds it after some time, or when it is due for another reason.
func (q *queue) AddAfter(service types.NamespacedName, after time.Duration) {
	q.due(service)
	q.TypedRateLimitingInterface.AddAfter(service, after)
}

// AddRateLimited adds it after its back-off, or when it is due for another
// reason.
func (q *queue) AddRateLimited(service types.NamespacedName) {
	q.due(service)
	q.TypedRateLimitingInterface.AddRateLimited(service)
}

func (q *queue) due(service types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shown[service] = nil
}

// AddShown adds a service of which the caches show an object in this state.
func (q *queue) AddShown(service types.NamespacedName, object metav1.Object) {
	q.mu.Lock()
	if shown, known := q.shown[service]; !known || shown != nil {
		q.shown[service] = append(shown, object)
	}
	q.mu.Unlock()
	q.TypedRateLimitingInterface.Add(service)
}

// Get waits for a service that is due. What it returns is to be given to Done.
func (q *queue) Get() (service types.NamespacedName, shutdown bool) {
	for {
		service, shutdown = q.TypedRateLimitingInterface.Get()
		if shutdown || !q.onlyEchoes(service) {
			return service, shutdown
		}
		q.Done(service)
	}
}

func (q *queue) onlyEchoes(service types.NamespacedName) bool {
	q.mu.Lock()
	shown := q.shown[service]
	delete(q.shown, service)
	q.mu.Unlock()
	only := len(shown) > 0
	for _, object := range shown {
		only = q.echo(service, object) && only
	}
	return only
}

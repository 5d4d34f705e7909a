// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"

	"github.com/clusterset-dns/clusterset-dns/controller/packed"
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
// process wrote: each write was decided with its outcome in mind. Clusters take turns: see lanes. It is safe for
// concurrent use.
type queue struct {
	workqueue.TypedRateLimitingInterface[types.NamespacedName]
	writer writer
	own    string // the id of the local cluster
	pack   func(*discoveryv1.EndpointSlice) *packed.Slice

	mu  sync.Mutex
	due map[types.NamespacedName]*due
}

// due is why a service is in the queue.
type due struct {
	// cluster is the one whose change made it due first, empty for the local one.
	cluster string
	// whole is set if everything is to be reconciled.
	whole bool
	// behind is set if the caches may be behind what was written.
	behind bool
	// shown are the objects that may be echoes of what was written.
	shown []shown
	// changes are the slices that changed, each with its states; states is their number.
	changes map[sliceKey][]*packed.Slice
	states  int
}

// shown is an object that a cache showed. Services may wait for long, and slices are packed meanwhile.
type shown struct {
	object metav1.Object // nil for a slice
	slice  *packed.Slice
}

func (q *queue) newShown(object metav1.Object) shown {
	if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
		return shown{slice: q.pack(slice)}
	}
	return shown{object: object}
}

func (s shown) open() metav1.Object {
	if s.slice != nil {
		return s.slice.Open()
	}
	return s.object
}

// A sliceKey identifies an EndpointSlice of a service: one of its Service in the local cluster, or one that a member
// publishes.
type sliceKey struct{ cluster, namespace, name string }

// maxStates bounds the states of slices because of which a service is due: they are held besides the caches. All of it
// is due if there are more.
const maxStates = 16

func newQueue(own string, writer writer) *queue {
	q := &queue{own: own, writer: writer, pack: packed.New, due: map[types.NamespacedName]*due{}}
	type key = types.NamespacedName
	q.TypedRateLimitingInterface = workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[key](backoffBase, backoffCap),
		workqueue.TypedRateLimitingQueueConfig[key]{
			DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[key]{
				Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[key]{Queue: newLanes(q.clusterOf)}),
			}),
		})
	return q
}

// clusterOf returns the cluster whose change made a service due, empty for the local one.
func (q *queue) clusterOf(service types.NamespacedName) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if d := q.due[service]; d != nil {
		return d.cluster
	}
	return ""
}

// Add adds a service of which everything is due because of the local cluster.
func (q *queue) Add(service types.NamespacedName) { q.AddFrom("", service) }

// AddFrom adds a service of which everything is due because of a cluster.
func (q *queue) AddFrom(cluster string, service types.NamespacedName) {
	q.note(service, cluster, all)
	q.TypedRateLimitingInterface.Add(service)
}

// AddAfter is Add after some time.
func (q *queue) AddAfter(service types.NamespacedName, after time.Duration) {
	q.note(service, "", all)
	q.TypedRateLimitingInterface.AddAfter(service, after)
}

// AddRateLimited is Add with a backoff.
func (q *queue) AddRateLimited(service types.NamespacedName) {
	q.note(service, "", all)
	q.TypedRateLimitingInterface.AddRateLimited(service)
}

func all(d *due) { *d = due{cluster: d.cluster, whole: true} }

// note adds to why a service is due.
func (q *queue) note(service types.NamespacedName, cluster string, change func(*due)) {
	if cluster == q.own {
		cluster = ""
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.due[service]
	if d == nil {
		d = &due{cluster: cluster}
		q.due[service] = d
	}
	if !d.whole {
		change(d)
	}
}

// AddShown adds a service because a cache shows one of its objects.
func (q *queue) AddShown(service types.NamespacedName, object metav1.Object) {
	if whole, _ := q.states(service, sliceKey{}); !whole {
		seen := q.newShown(object)
		q.note(service, "", func(d *due) { d.shown = append(d.shown, seen) })
	}
	q.TypedRateLimitingInterface.Add(service)
}

// states reports whether all of a service is due, and how many states of a slice are. If they are taken before more are
// noted, the reconcile that took them sees the newest state in the caches.
func (q *queue) states(service types.NamespacedName, key sliceKey) (whole bool, states int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if d := q.due[service]; d != nil {
		return d.whole, len(d.changes[key])
	}
	return false, 0
}

// AddBehind adds a service that the caches may be behind of.
func (q *queue) AddBehind(service types.NamespacedName) {
	q.note(service, "", func(d *due) { d.behind = true })
	q.TypedRateLimitingInterface.Add(service)
}

// AddSlice adds a service because one slice of a cluster changed.
func (q *queue) AddSlice(service types.NamespacedName, cluster string, before, after *discoveryv1.EndpointSlice) {
	key := sliceKey{cluster, after.Namespace, after.Name}
	if whole, states := q.states(service, key); !whole {
		// They are packed without the lock, which each worker takes.
		var seen []*packed.Slice
		if states == 0 {
			seen = append(seen, q.pack(before))
		}
		seen = append(seen, q.pack(after))
		q.note(service, cluster, func(d *due) { d.add(key, seen) })
	}
	q.TypedRateLimitingInterface.Add(service)
}

// add adds states of a slice that changed. The first of them has the state before.
func (d *due) add(key sliceKey, seen []*packed.Slice) {
	if d.changes == nil {
		d.changes = map[sliceKey][]*packed.Slice{}
	}
	if len(d.changes[key]) == 0 && len(seen) < 2 {
		all(d) // the former ones were taken meanwhile
		return
	}
	d.changes[key] = append(d.changes[key], seen...)
	if d.states += len(seen); d.states > maxStates {
		all(d)
	}
}

// pending returns the number of services that are due now or later.
func (q *queue) pending() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.due)
}

// Get returns the next service that is due for more than echoes, and the slices that changed, each with its successive
// states, if no more of it is due; nil if everything is.
func (q *queue) Get() (service types.NamespacedName, changes map[sliceKey][]*packed.Slice,
	shutdown bool,
) {
	for {
		service, shutdown = q.TypedRateLimitingInterface.Get()
		if shutdown {
			return service, nil, true
		}
		switch d := q.take(service); {
		case d.whole || !q.onlyEchoes(service, d):
			return service, nil, false
		case len(d.changes) > 0:
			return service, d.changes, false
		}
		q.Done(service)
	}
}

// more reports whether more than slices became due of a service since Get returned it.
func (q *queue) more(service types.NamespacedName) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.due[service]
	return d != nil && (d.whole || slices.ContainsFunc(d.shown, func(s shown) bool { return s.object != nil }))
}

// Retry adds a service without the backoff of its failures.
func (q *queue) Retry(service types.NamespacedName) {
	q.Forget(service)
	q.Add(service)
}

// take returns why a service is due, and forgets it.
func (q *queue) take(service types.NamespacedName) due {
	q.mu.Lock()
	defer q.mu.Unlock()
	d := q.due[service]
	delete(q.due, service)
	if d == nil {
		return due{whole: true}
	}
	return *d
}

// onlyEchoes reports whether the caches show nothing but what was written.
func (q *queue) onlyEchoes(service types.NamespacedName, d due) bool {
	only := true
	for _, object := range d.shown {
		only = q.writer.Echo(service, object.open()) && only
	}
	return only && (!d.behind || len(d.shown) > 0 || q.writer.CaughtUp(service))
}

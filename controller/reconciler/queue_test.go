// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"fmt"
	"runtime"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/packed"
)

// writerOf wrote one object.
type writerOf struct{ object metav1.Object }

func (w writerOf) Echo(_ types.NamespacedName, shown metav1.Object) bool { return shown == w.object }

func (w writerOf) CaughtUp(types.NamespacedName) bool { return true }

// TestEchoesCauseNoPass: a service is skipped only if nothing but echoes of own writes made it due.
func TestEchoesCauseNoPass(t *testing.T) {
	web, db := types.NamespacedName{Namespace: "demo", Name: "web"}, types.NamespacedName{Namespace: "demo", Name: "db"}
	own, other := &metav1.ObjectMeta{Name: "own"}, &metav1.ObjectMeta{Name: "other"}
	change := func(q *queue, times int) {
		for range times {
			slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web-1"}}
			q.AddSlice(web, "west", slice, slice)
		}
	}
	for name, test := range map[string]struct {
		add  func(*queue)
		want bool
		// states are how many states of the slice that changed are left, if only that is due.
		states int
	}{
		"an echo":                     {func(q *queue) { q.AddShown(web, own) }, false, 0},
		"two echoes":                  {func(q *queue) { q.AddShown(web, own); q.AddShown(web, own) }, false, 0},
		"another object":              {func(q *queue) { q.AddShown(web, own); q.AddShown(web, other) }, true, 0},
		"it is due before":            {func(q *queue) { q.Add(web); q.AddShown(web, own) }, true, 0},
		"it is due as well":           {func(q *queue) { q.AddShown(web, own); q.Add(web) }, true, 0},
		"it failed, and is due later": {func(q *queue) { q.AddRateLimited(web); q.AddShown(web, own) }, true, 0},
		"it is held back":             {func(q *queue) { q.AddAfter(web, 1); q.AddShown(web, own) }, true, 0},
		"a slice":                     {func(q *queue) { change(q, 1) }, true, 2},
		"a slice, twice":              {func(q *queue) { change(q, 2) }, true, 3},
		"a slice and an echo":         {func(q *queue) { change(q, 1); q.AddShown(web, own) }, true, 2},
		"a slice and another object":  {func(q *queue) { change(q, 1); q.AddShown(web, other) }, true, 0},
		"a slice and all else":        {func(q *queue) { change(q, 1); q.Add(web) }, true, 0},
		"all, and a slice":            {func(q *queue) { q.Add(web); change(q, 1) }, true, 0},
		"a slice that fails":          {func(q *queue) { change(q, 1); q.AddRateLimited(web) }, true, 0},
		"a slice in too many states":  {func(q *queue) { change(q, 2*maxStates) }, true, 0},
		"a slice, and caches behind":  {func(q *queue) { change(q, 1); q.AddBehind(web) }, true, 2},
	} {
		q := newQueue("east", writerOf{own})
		test.add(q)
		q.Add(db)
		want := db
		if test.want {
			want = web
		}
		got, changes, _ := q.Get()
		if got != want {
			t.Errorf("%s: got %v", name, got)
		}
		if states := len(changes[sliceKey{"west", "demo", "web-1"}]); states != test.states {
			t.Errorf("%s: %d states of the slice, want %d", name, states, test.states)
		}
		q.ShutDown()
	}
}

// TestMoreIsDue while a reconcile waits for caches: a slice that changed does not suffice any more, unless only slices
// are shown.
func TestMoreIsDue(t *testing.T) {
	web := types.NamespacedName{Namespace: "demo", Name: "web"}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web-1"}}
	for name, test := range map[string]struct {
		add  func(*queue)
		want bool
	}{
		"nothing":         {func(*queue) {}, false},
		"another slice":   {func(q *queue) { q.AddSlice(web, "west", slice, slice) }, false},
		"a slice shown":   {func(q *queue) { q.AddShown(web, slice) }, false},
		"a ServiceExport": {func(q *queue) { q.AddShown(web, &metav1.ObjectMeta{Name: "web"}) }, true},
		"everything":      {func(q *queue) { q.Add(web) }, true},
	} {
		q := newQueue("east", writerOf{})
		q.AddSlice(web, "", slice, slice)
		if _, changes, _ := q.Get(); len(changes) != 1 {
			t.Fatalf("%s: %d slices changed", name, len(changes))
		}
		test.add(q)
		if got := q.more(web); got != test.want {
			t.Errorf("%s: more is due: %v", name, got)
		}
		q.ShutDown()
	}
}

// TestWhatWaitsTakesLittle: changes that come faster than they are written must not fill the memory.
func TestWhatWaitsTakesLittle(t *testing.T) {
	heap := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools held is garbage once more
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	q := newQueue("east", writerOf{})
	defer q.ShutDown()
	const services, endpoints = 50, 1000
	state := func() *discoveryv1.EndpointSlice {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web-1"}}
		for i := range endpoints {
			slice.Endpoints = append(slice.Endpoints,
				discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.%d.%d", i/250, i%250)}})
		}
		return slice
	}
	before := heap()
	for i := range services {
		service := types.NamespacedName{Namespace: "demo", Name: fmt.Sprint(i)}
		q.AddSlice(service, "west", state(), state())
		q.AddShown(service, state())
	}
	if each := int(heap()-before) / (3 * services * endpoints); each > 20 {
		t.Errorf("an endpoint of a waiting slice takes %d bytes", each)
	}
	runtime.KeepAlive(q)
}

// TestSlicesArePackedWithoutTheLock: packing a large slice delays no worker, and is left out if all is due anyway.
func TestSlicesArePackedWithoutTheLock(t *testing.T) {
	q := newQueue("east", writerOf{})
	defer q.ShutDown()
	count := 0
	q.pack = func(slice *discoveryv1.EndpointSlice) *packed.Slice {
		if count++; !q.mu.TryLock() {
			t.Error("a slice is packed under the lock")
		} else {
			q.mu.Unlock()
		}
		return packed.New(slice)
	}
	web, slice := types.NamespacedName{Namespace: "demo", Name: "web"}, &discoveryv1.EndpointSlice{}
	for _, want := range []int{2, 3} { // with the state before, and without
		if q.AddSlice(web, "west", slice, slice); count != want {
			t.Errorf("%d states are packed, want %d", count, want)
		}
	}
	if q.AddShown(web, slice); count != 4 {
		t.Errorf("%d states are packed, want 4", count)
	}
	q.Add(web)
	q.AddSlice(web, "west", slice, slice)
	if q.AddShown(web, slice); count != 4 {
		t.Errorf("%d states are packed, want 4 as all is due", count)
	}
}

// TestPending: a service that failed is due once more, although the queue does not have it yet.
func TestPending(t *testing.T) {
	q := newQueue("east", writerOf{})
	defer q.ShutDown()
	service := types.NamespacedName{Namespace: "shop", Name: "db"}
	q.AddRateLimited(service)
	if q.pending() != 1 {
		t.Errorf("%d services are pending", q.pending())
	}
}

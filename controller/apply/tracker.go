// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// unseenFor is how long a write is waited for. After a restore of etcd, resourceVersions go back, and a cache may never show
// it.
const unseenFor = 10 * time.Second

// A tracker holds the versions of the objects that were written and that the caches do not show yet, as the
// EndpointSliceTracker of k8s.io/endpointslice does. A service is not reconciled until they do, so no pass decides by
// what this process has replaced, and what it wrote makes no pass due. It is safe for concurrent use.
type tracker struct {
	mu       sync.Mutex
	services map[types.NamespacedName]*unseen
}

// unseen are the writes of one service that are not shown.
type unseen struct {
	versions map[types.UID]string
	// last is when it was written last.
	last time.Time
	// waits is set while a pass waits.
	waits bool
}

// wrote notes an object as the API server stored it.
func (t *tracker) wrote(service types.NamespacedName, written metav1.Object, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.services == nil {
		t.services = map[types.NamespacedName]*unseen{}
	}
	of := t.services[service]
	if of == nil {
		of = &unseen{versions: map[types.UID]string{}}
		t.services[service] = of
	}
	of.versions[written.GetUID()], of.last = written.GetResourceVersion(), now
}

// sees notes that a cache shows an object, or that it is gone. It reports whether the service is due for it: unless it is
// what was written, or older, and no pass waits only for it.
func (t *tracker) sees(service types.NamespacedName, shown metav1.Object, gone bool, now time.Time) (due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of(service, now)
	if of == nil {
		return true
	}
	version, known := of.versions[shown.GetUID()]
	if !known || !gone && older(shown.GetResourceVersion(), version) {
		return !known
	}
	delete(of.versions, shown.GetUID())
	if len(of.versions) == 0 {
		delete(t.services, service)
	}
	return gone || version != shown.GetResourceVersion() || len(of.versions) == 0 && of.waits
}

// unseen returns the versions of a service that no cache shows yet, in a new map. It is to be called before the caches are
// read.
func (t *tracker) unseen(service types.NamespacedName, now time.Time) map[types.UID]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.of(service, now); of != nil {
		return maps.Clone(of.versions)
	}
	return nil
}

// wait reports whether a pass waits, because the objects that were read from the caches do not show the versions that were
// not seen before. again is set if the caches show them by now.
func (t *tracker) wait(service types.NamespacedName, before map[types.UID]string, cached []metav1.Object, now time.Time) (waits, again bool) {
	for _, object := range cached {
		if version, known := before[object.GetUID()]; known && !older(object.GetResourceVersion(), version) {
			delete(before, object.GetUID())
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of(service, now)
	if of == nil {
		return len(before) > 0, len(before) > 0
	}
	// The caches may have shown a write before its answer came.
	maps.DeleteFunc(of.versions, func(uid types.UID, _ string) bool { _, late := before[uid]; return !late })
	if len(of.versions) == 0 {
		delete(t.services, service)
		return len(before) > 0, len(before) > 0
	}
	of.waits = true
	return true, false
}

// expired returns the services whose passes no longer wait.
func (t *tracker) expired(now time.Time) (services []types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for service, of := range t.services {
		if t.of(service, now) == nil && of.waits {
			services = append(services, service)
		}
	}
	return services
}

// of returns what is not shown of a service, nil for nothing that is still waited for.
func (t *tracker) of(service types.NamespacedName, now time.Time) *unseen {
	of := t.services[service]
	if of != nil && now.Sub(of.last) >= unseenFor {
		delete(t.services, service)
		return nil
	}
	return of
}

func (t *tracker) forget(service types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.services, service)
}

// Sees notes that a cache shows an object of a service, or that it is gone, and reports whether the service is to be
// reconciled because of it.
func (a *Applier) Sees(service types.NamespacedName, shown metav1.Object, gone bool) (due bool) {
	return a.tracker.sees(service, shown, gone, a.Clock.Now())
}

// Unseen returns the versions of what was written of a service that the caches do not show yet. It is to be called before
// they are read, for Waits.
func (a *Applier) Unseen(service types.NamespacedName) map[types.UID]string {
	return a.tracker.unseen(service, a.Clock.Now())
}

// Waits reports whether a service is not to be reconciled yet, because what was read of it from the caches does not show all
// that was Unseen before. Sees reports when they do, and Expired if they do not for too long; again is set if they do by now.
func (a *Applier) Waits(existing Existing, before map[types.UID]string) (waits, again bool) {
	return a.tracker.wait(existing.Observed.Service, before, existing.objects(), a.Clock.Now())
}

// Expired returns the services that waited for long enough, once. It is to be called every few seconds.
func (a *Applier) Expired() []types.NamespacedName { return a.tracker.expired(a.Clock.Now()) }

// Forget drops the state of a service that is no longer reconciled.
func (a *Applier) Forget(service types.NamespacedName) {
	a.tracker.forget(service)
	a.reported.unreported(service, nil)
}

// older reports whether a resourceVersion is known to be older than another of the same kind.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// strip drops the managed fields, which no cache holds.
func strip[T any, P object[T]](answer P) P {
	if answer != nil {
		answer.SetManagedFields(nil)
	}
	return answer
}

// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// UnseenFor is how long the caches may take to show a write. After a restore of etcd, resourceVersions go back, and a
// cache may never show it.
const UnseenFor = 10 * time.Second

// A tracker remembers each written version and each deletion until an event shows it, like the EndpointSliceTracker of
// k8s.io/endpointslice. The service is not reconciled until then, so no pass reads objects that this process has
// replaced, and events of own writes cause no pass. It is safe for concurrent use.
type tracker struct {
	mu       sync.Mutex
	services map[types.NamespacedName]*unseen
}

// unseen has the writes of a service that no event has shown.
type unseen struct {
	versions map[types.UID]string // by object, empty for a deletion
	at       time.Time            // of the last write
	// early has the last event of each object since the pass began to write: a watch often shows a write before the API
	// server answers it. It is nil between passes.
	early map[types.UID]Change
	// waiting is set if a pass waits until events have shown all writes.
	waiting bool
}

// A Change is an object that a cache shows or, if Gone is set, no longer shows. The object is shared and must not be changed.
type Change struct {
	metav1.Object
	Gone bool
}

// shownBy reports whether a cached object reflects the write of a version or, if it is empty, a deletion. A version that cannot be
// compared counts as newer.
func shownBy(object metav1.Object, version string) bool {
	if version == "" {
		return object.GetDeletionTimestamp() != nil
	}
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), version)
	return err != nil || order >= 0
}

// begins notes that a pass over a service is about to write. wrote and ends follow.
func (t *tracker) begins(service types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.services == nil {
		t.services = map[types.NamespacedName]*unseen{}
	}
	t.services[service] = &unseen{versions: map[types.UID]string{}, early: map[types.UID]Change{}}
}

// wrote notes the version of an object that the API server stored, empty if it was deleted.
func (t *tracker) wrote(service types.NamespacedName, uid types.UID, version string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.services[service]
	of.versions[uid], of.at = version, now
}

// ends notes that a pass has made all writes, and reports whether an event since begins makes the service due.
func (t *tracker) ends(service types.NamespacedName) (due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.services[service]
	for _, each := range of.early {
		due = of.concerned(each) || due
	}
	if of.early = nil; len(of.versions) == 0 {
		delete(t.services, service)
	}
	return due
}

// Sees notes that a cache shows a change of an object of a service. It reports whether the service must be reconciled because of
// it: not if it shows a written version or an older one. While a pass writes, due is false, and ends decides. waited reports that
// the caches show all writes now, for which a pass waited.
func (t *tracker) Sees(service types.NamespacedName, shown Change) (due, waited bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.services[service]
	switch {
	case of == nil:
		return true, false
	case of.early != nil:
		of.early[shown.GetUID()] = shown
		return false, false
	}
	if due = of.concerned(shown); len(of.versions) == 0 {
		delete(t.services, service)
		waited = of.waiting
	}
	return due, waited
}

// concerned is Sees between passes.
func (u *unseen) concerned(shown Change) bool {
	version, known := u.versions[shown.GetUID()]
	switch {
	case !known:
		return true
	case !shown.Gone && !shownBy(shown, version):
		return false
	}
	delete(u.versions, shown.GetUID())
	return shown.Gone || version != shown.GetResourceVersion()
}

// Behind reports whether the caches do not show all writes of a service yet.
func (t *tracker) Behind(service types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.services[service] != nil
}

// Wait reports whether a service must not be reconciled yet, because the caches are behind: Sees or Expired tells when it must.
// Call Wait between passes, before the caches are read.
func (t *tracker) Wait(service types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.services[service]
	if of != nil {
		of.waiting = true
	}
	return of != nil
}

// Expired reports whether the caches have not shown all writes of a service UnseenFor after the last one, and forgets them then:
// the service must be reconciled. An object that was deleted while a watch was broken, for example, causes no event.
func (t *tracker) Expired(service types.NamespacedName, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.services[service]
	if of == nil || of.early != nil || now.Sub(of.at) < UnseenFor {
		return false
	}
	delete(t.services, service)
	return true
}

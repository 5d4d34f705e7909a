// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// UnseenFor is how long a write is waited for. After a restore of etcd, resourceVersions go back, and a cache may never show
// it.
const UnseenFor = 10 * time.Second

// A tracker holds the versions of the objects that were written, and those that were deleted, until an event shows that, as the
// EndpointSliceTracker of k8s.io/endpointslice does. A service is not reconciled until then, so no pass decides by what this
// process has replaced, and what it wrote makes no pass due. It is safe for concurrent use.
type tracker struct {
	mu       sync.Mutex
	services map[types.NamespacedName]*unseen
}

// unseen is what was written of a service and is not shown.
type unseen struct {
	versions map[types.UID]string // empty for a deletion
	at       time.Time            // of the last write
	// early has the last event of each object since the pass began to write: a watch often shows a write before the answer
	// comes. It is nil between passes.
	early map[types.UID]Change
}

// A Change is an object that a cache shows, or that is gone from it. The object is shared and must not be changed.
type Change struct {
	metav1.Object
	Gone bool
}

// shownBy reports whether a write is shown by the state of the object in a cache. A finalizer may hold one that was deleted.
func shownBy(object metav1.Object, version string) bool {
	if version == "" {
		return object.GetDeletionTimestamp() != nil
	}
	return !older(object.GetResourceVersion(), version)
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

// wrote notes the version of an object as the API server stored it, empty if it was deleted.
func (t *tracker) wrote(service types.NamespacedName, uid types.UID, version string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.services[service]
	of.versions[uid], of.at = version, now
}

// ends notes that a pass has written all, and reports whether the service is due for what caches showed since begins.
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

// Sees notes that a cache shows an object of a service, or that it is gone. It reports whether the service is to be
// reconciled because of it: not for what was written, or older. While a pass writes it returns false, and its end decides.
func (t *tracker) Sees(service types.NamespacedName, shown Change) (due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.services[service]
	switch {
	case of == nil:
		return true
	case of.early != nil:
		of.early[shown.GetUID()] = shown
		return false
	}
	if due = of.concerned(shown); len(of.versions) == 0 {
		delete(t.services, service)
	}
	return due
}

// concerned is Sees after the end of the pass.
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

// Behind reports whether the caches do not show yet all that was written of a service. Then it is not to be reconciled. It is to
// be called between passes, before the caches are read.
func (t *tracker) Behind(service types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.services[service] != nil
}

// Expired reports whether the caches did not show for UnseenFor what was written of a service, and forgets it then: the service
// is to be reconciled, as an object that was deleted while a watch was broken causes no event.
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

// Forget drops the state of a service that is no longer reconciled.
func (t *tracker) Forget(service types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.services, service)
}

// older reports whether a resourceVersion is known to be older than another of the same kind.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// unseenFor is how long a write is waited for. After a restore of etcd, resourceVersions go back, and a cache may never show
// it.
const unseenFor = 10 * time.Second

// A tracker holds the versions of the objects that were written, and those that were deleted, until an event shows that, as the
// EndpointSliceTracker of k8s.io/endpointslice does. A service is not reconciled until then, so no pass decides by what this
// process has replaced, and what it wrote makes no pass due. It is safe for concurrent use.
type tracker struct {
	mu       sync.Mutex
	services map[types.NamespacedName]map[types.UID]unseen
	// early has the last event of each object since a request for its service was sent: a watch often shows a write before
	// the answer comes. Services without a request are not in it.
	early map[types.NamespacedName]map[types.UID]Change
}

// A Change is an object that a cache shows, or that is gone from it. The object is shared and must not be changed.
type Change struct {
	metav1.Object
	Gone bool
}

// unseen is a write that is not shown.
type unseen struct {
	version string // empty for a deletion
	at      time.Time
}

// shownBy reports whether a write is shown by the state of the object in a cache. A finalizer may hold one that was deleted.
func (u unseen) shownBy(object metav1.Object) bool {
	if u.version == "" {
		return object.GetDeletionTimestamp() != nil
	}
	return !older(object.GetResourceVersion(), u.version)
}

// sends notes that an object of a service is about to be written or deleted. answered follows.
func (t *tracker) sends(service types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.services == nil {
		t.services, t.early = map[types.NamespacedName]map[types.UID]unseen{}, map[types.NamespacedName]map[types.UID]Change{}
	}
	t.early[service] = map[types.UID]Change{}
}

// answered notes the object as the API server stored it, without a version if it was deleted, nil if the request failed. It
// reports whether the service is due for what caches showed since sends.
func (t *tracker) answered(service types.NamespacedName, written metav1.Object, now time.Time) (due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	early := t.early[service]
	delete(t.early, service)
	if written != nil && t.services[service] == nil {
		t.services[service] = map[types.UID]unseen{}
	}
	if written != nil {
		t.services[service][written.GetUID()] = unseen{written.GetResourceVersion(), now}
	}
	for _, each := range early {
		due = t.concerned(service, each) || due
	}
	return due
}

// Sees notes that a cache shows an object of a service, or that it is gone. It reports whether the service is to be
// reconciled because of it: not for what was written, or older. While a request is unanswered it returns false, and the
// answer decides.
func (t *tracker) Sees(service types.NamespacedName, shown Change) (due bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if early := t.early[service]; early != nil {
		early[shown.GetUID()] = shown
		return false
	}
	return t.concerned(service, shown)
}

// concerned is Sees after all answers. It is called with the lock held.
func (t *tracker) concerned(service types.NamespacedName, shown Change) bool {
	of, known := t.services[service][shown.GetUID()]
	switch {
	case !known:
		return true
	case !shown.Gone && !of.shownBy(shown):
		return false
	}
	t.drop(service, shown.GetUID())
	return shown.Gone || of.version != shown.GetResourceVersion()
}

// Behind reports whether the caches do not show yet all that was written of a service. Then it is not to be reconciled. It is to
// be called before the caches are read.
func (t *tracker) Behind(service types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.services[service]) > 0
}

// Expired returns the services, perhaps twice, that are to be reconciled because the caches never showed what was written of
// them, and forgets these writes: an object that was deleted while a watch was broken causes no event. It is to be called
// every few seconds.
func (t *tracker) Expired(now time.Time) (services []types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for service, writes := range t.services {
		for uid, of := range writes {
			if now.Sub(of.at) >= unseenFor {
				t.drop(service, uid)
				services = append(services, service)
			}
		}
	}
	return services
}

// drop is called with the lock held.
func (t *tracker) drop(service types.NamespacedName, uid types.UID) {
	if delete(t.services[service], uid); len(t.services[service]) == 0 {
		delete(t.services, service)
	}
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

// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Versions are the resourceVersions up to which the caches of each kind are complete, empty if unknown. Read them
// before the caches.
type Versions struct {
	ServiceImports, ServiceExports, Services, EndpointSlices string
}

// A mutationCache holds the API server's answers to writes until the caches show them, as client-go's MutationCache
// does. The first write of a pass requeues its service, and the next pass often starts before the caches show the last
// write: without the answers it would write again.
//
// It is safe for concurrent use, for one service by one goroutine at a time.
type mutationCache struct {
	mu       sync.Mutex
	services map[types.NamespacedName]*mutations
}

// mutations are the last answers for the objects of one service.
type mutations struct {
	serviceImport  *v1beta1.ServiceImport
	serviceExport  *v1beta1.ServiceExport
	derivedService *corev1.Service
	endpointSlices map[string]echo    // by name
	deleted        map[types.UID]bool // slices that the caches may still have
	echoes         []echo             // written, and not in the caches yet
	updated        time.Time          // when this changed last
}

// maxMutationAge is how long an answer precedes the caches. After a restore of etcd, resourceVersions go back and the
// caches seem to be behind for ever.
const maxMutationAge = time.Minute

// maxEchoDelay bounds the time between the update of a cache and the event for it.
const maxEchoDelay = 5 * time.Second

// of returns the mutations of a service, nil if there are none.
func (r *mutationCache) of(service types.NamespacedName) *mutations {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.services[service]
}

// forUpdate returns the mutations of a service for the caller to add to.
func (r *mutationCache) forUpdate(service types.NamespacedName, now time.Time) *mutations {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.services == nil {
		r.services = map[types.NamespacedName]*mutations{}
	}
	if r.services[service] == nil {
		r.services[service] = &mutations{
			endpointSlices: map[string]echo{},
			deleted:        map[types.UID]bool{},
		}
	}
	r.services[service].updated = now
	return r.services[service]
}

func (r *mutationCache) forget(service types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.services, service)
}

// CatchUp replaces objects in existing, which come from the caches, by newer ones that this Applier wrote. It changes
// the list of slices.
func (a *Applier) CatchUp(existing *Existing, shown Versions) {
	observed := &existing.Observed
	known := a.mutations.of(observed.Service)
	if known == nil {
		return
	}
	if a.Clock.Since(known.updated) > maxMutationAge {
		a.mutations.forget(observed.Service)
		return
	}
	observed.ServiceImport = newest(&known.serviceImport, observed.ServiceImport, shown.ServiceImports)
	observed.ServiceExport = newest(&known.serviceExport, observed.ServiceExport, shown.ServiceExports)
	observed.DerivedService = newest(&known.derivedService, observed.DerivedService, shown.Services)
	existing.EndpointSlices = known.withoutDeleted(existing.EndpointSlices)
	cached := make(map[string]bool, len(existing.EndpointSlices))
	for i, slice := range existing.EndpointSlices {
		cached[slice.Name] = true
		existing.EndpointSlices[i] = known.newestSlice(slice.Name, slice, shown.EndpointSlices)
	}
	for name := range known.endpointSlices {
		if cached[name] {
			continue
		}
		if slice := known.newestSlice(name, nil, shown.EndpointSlices); slice != nil {
			existing.EndpointSlices = append(existing.EndpointSlices, slice)
		}
	}
	if known.empty() && (len(known.echoes) == 0 || a.Clock.Since(known.updated) > maxEchoDelay) {
		a.mutations.forget(observed.Service)
	}
}

// Echo reports whether an event only shows what this Applier wrote, and drops the mutation. Equal resourceVersions do
// not prove that, because an etcd that was restored from a backup uses them again.
func (a *Applier) Echo(service types.NamespacedName, shown metav1.Object) bool {
	a.mutations.mu.Lock()
	defer a.mutations.mu.Unlock()
	known := a.mutations.services[service]
	if known == nil {
		return false
	}
	at := slices.IndexFunc(known.echoes, func(written echo) bool { return written.is(shown) })
	if at < 0 {
		return false
	}
	after := slices.Clone(known.echoes[at+1:])
	known.echoes = append(slices.DeleteFunc(known.echoes[:at], func(written echo) bool {
		return written.kind == kindOf(shown) && written.name == shown.GetName() // passed over
	}), after...)
	known.shows(shown)
	if known.empty() && len(known.echoes) == 0 {
		delete(a.mutations.services, service)
	}
	return true
}

// CaughtUp reports whether the caches show all writes to a service. The service must not be in reconciliation.
func (a *Applier) CaughtUp(service types.NamespacedName) bool {
	a.mutations.mu.Lock()
	defer a.mutations.mu.Unlock()
	known := a.mutations.services[service]
	if known != nil && !known.empty() {
		return false
	}
	delete(a.mutations.services, service)
	return true
}

// Behind returns the services whose writes the caches have not shown for that long. This happens if an object was
// deleted while a watch was broken; no event requeues the service then.
func (a *Applier) Behind(since time.Duration) (services []types.NamespacedName) {
	a.mutations.mu.Lock()
	defer a.mutations.mu.Unlock()
	for service, known := range a.mutations.services {
		if a.Clock.Since(known.updated) >= since { // all else may change meanwhile
			services = append(services, service)
		}
	}
	return services
}

// Forget drops the state of a service that is no longer reconciled.
func (a *Applier) Forget(service types.NamespacedName) {
	a.mutations.forget(service)
	a.reported.unreported(service, nil)
}

// newest returns the newer of a mutation and the cached object, nil for none. It drops the mutation once the cache
// shows it or a later state.
func newest[T any, P object[T]](mutation *P, cached P, shown string) P {
	if *mutation == nil {
		return cached
	}
	if shows(cached, shown, (*mutation).GetResourceVersion()) {
		*mutation = nil
		return cached
	}
	return *mutation
}

// newestSlice is newest for a slice.
func (a *mutations) newestSlice(name string, cached *discoveryv1.EndpointSlice, shown string) *discoveryv1.EndpointSlice {
	last, known := a.endpointSlices[name]
	if !known {
		return cached
	}
	if shows(cached, shown, last.version) {
		delete(a.endpointSlices, name)
		return cached
	}
	return last.slice.Open()
}

// shows reports whether a cache, which is complete up to the version shown and has the object, nil for none, shows a
// version of it or a later one.
func shows[T any, P object[T]](cached P, shown, version string) bool {
	return !older(shown, version) || cached != nil && !older(cached.GetResourceVersion(), version)
}

// older reports whether a resourceVersion is known to be older than another of the same kind.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// noteSlice adds a slice of the cluster set of this controller, nil for a deleted one.
func (a *mutations) noteSlice(set export.Set, name string, slice *discoveryv1.EndpointSlice) {
	if slice == nil || !set.Manages(slice) {
		delete(a.endpointSlices, name)
		return
	}
	a.endpointSlices[name] = newEcho(slice)
}

// noteDeleted adds the deletion of a slice.
func (a *mutations) noteDeleted(slice *discoveryv1.EndpointSlice) {
	a.noteSlice("", slice.Name, nil)
	a.deleted[slice.UID] = slice.UID != ""
}

// withoutDeleted returns the cached slices without those that were deleted, unless a finalizer holds them. It drops
// deletions that the caches show.
func (a *mutations) withoutDeleted(cached []*discoveryv1.EndpointSlice) (left []*discoveryv1.EndpointSlice) {
	deleted := map[types.UID]bool{}
	for _, slice := range cached {
		if a.deleted[slice.UID] && slice.DeletionTimestamp == nil {
			deleted[slice.UID] = true
		} else {
			left = append(left, slice)
		}
	}
	a.deleted = deleted
	return left
}

func (a *mutations) empty() bool {
	return a.serviceImport == nil && a.serviceExport == nil && a.derivedService == nil &&
		len(a.endpointSlices) == 0 && len(a.deleted) == 0
}

// shows drops the mutation of an object if the caches show that version.
func (a *mutations) shows(object metav1.Object) {
	is := func(mutation metav1.Object) bool {
		return mutation.GetResourceVersion() == object.GetResourceVersion()
	}
	switch shown := object.(type) {
	case *v1beta1.ServiceImport:
		if a.serviceImport != nil && is(a.serviceImport) {
			a.serviceImport = nil
		}
	case *v1beta1.ServiceExport:
		if a.serviceExport != nil && is(a.serviceExport) {
			a.serviceExport = nil
		}
	case *corev1.Service:
		if a.derivedService != nil && is(a.derivedService) {
			a.derivedService = nil
		}
	case *discoveryv1.EndpointSlice:
		if a.endpointSlices[shown.Name].version == shown.ResourceVersion {
			delete(a.endpointSlices, shown.Name)
		}
	}
}

// strip drops the managed fields, which no cache holds.
func strip[T any, P object[T]](answer P) P {
	if answer != nil {
		answer.SetManagedFields(nil)
	}
	return answer
}

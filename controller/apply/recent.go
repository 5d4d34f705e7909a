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

// Versions are the resourceVersions up to which the caches show each kind,
// empty where that is not known. They are to be taken before the caches are
// read.
type Versions struct {
	ServiceImports, ServiceExports, Services, EndpointSlices string
}

// recent remembers what the API server said of the objects of a service until
// the caches show it. The first write of a pass names its service for another
// one, which comes before the caches show the last write: without memory it
// would create what is there, and update what is as it should be.
//
// It is safe for concurrent use; of one service by one goroutine at a time.
type recent struct {
	mu       sync.Mutex
	services map[types.NamespacedName]*answers
}

// answers are what the API server said last of the objects of one service.
type answers struct {
	serviceImport  *v1beta1.ServiceImport
	serviceExport  *v1beta1.ServiceExport
	derivedService *corev1.Service
	endpointSlices map[string]*discoveryv1.EndpointSlice // by name
	deleted        map[types.UID]bool                    // slices that the caches may still show
	echoes         []metav1.Object                       // written, and not shown yet
	noted          time.Time                             // last
}

// recentFor is for how long anything is remembered. Caches that are behind for
// longer are believed again: resourceVersions may have gone back, where an etcd
// was restored.
const recentFor = time.Minute

// echoesFor is for how long the caches may show an object before they tell of it.
const echoesFor = 5 * time.Second

// of returns what is remembered of a service, nil for nothing.
func (r *recent) of(service types.NamespacedName) *answers {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.services[service]
}

// noting returns what is remembered of a service, so that more can be, now.
func (r *recent) noting(service types.NamespacedName, now time.Time) *answers {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.services == nil {
		r.services = map[types.NamespacedName]*answers{}
	}
	if r.services[service] == nil {
		r.services[service] = &answers{
			endpointSlices: map[string]*discoveryv1.EndpointSlice{},
			deleted:        map[types.UID]bool{},
		}
	}
	r.services[service].noted = now
	return r.services[service]
}

func (r *recent) forget(service types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.services, service)
}

// CatchUp puts into existing, which is what the caches show of a service, what
// this Applier knows to be newer. The list of slices is changed.
func (a *Applier) CatchUp(existing *Existing, shown Versions) {
	observed := &existing.Observed
	known := a.recent.of(observed.Service)
	if known == nil {
		return
	}
	if a.Clock.Since(known.noted) > recentFor {
		a.recent.forget(observed.Service)
		return
	}
	observed.ServiceImport = newest(&known.serviceImport, observed.ServiceImport, shown.ServiceImports)
	observed.ServiceExport = newest(&known.serviceExport, observed.ServiceExport, shown.ServiceExports)
	observed.DerivedService = newest(&known.derivedService, observed.DerivedService, shown.Services)
	existing.EndpointSlices = known.withoutDeleted(existing.EndpointSlices)
	cached := make(map[string]bool, len(existing.EndpointSlices))
	for i, slice := range existing.EndpointSlices {
		cached[slice.Name] = true
		if last := known.endpointSlices[slice.Name]; last != nil {
			existing.EndpointSlices[i] = newest(&last, slice, shown.EndpointSlices)
			known.noteSlice(slice.Name, last)
		}
	}
	for name, last := range known.endpointSlices {
		if cached[name] {
			continue
		}
		if slice := newest(&last, nil, shown.EndpointSlices); slice != nil {
			existing.EndpointSlices = append(existing.EndpointSlices, slice)
		}
		known.noteSlice(name, last)
	}
	if known.empty() && (len(known.echoes) == 0 || a.Clock.Since(known.noted) > echoesFor) {
		a.recent.forget(observed.Service)
	}
}

// Echo reports whether the caches show no more of an object than what this Applier
// wrote. Equal resourceVersions do not prove that: an etcd that was restored from a
// backup uses them again. What the caches show is remembered no longer.
func (a *Applier) Echo(service types.NamespacedName, shown metav1.Object) bool {
	a.recent.mu.Lock()
	defer a.recent.mu.Unlock()
	known := a.recent.services[service]
	if known == nil {
		return false
	}
	at := slices.IndexFunc(known.echoes, func(written metav1.Object) bool {
		return written.GetName() == shown.GetName() && written.GetResourceVersion() == shown.GetResourceVersion() &&
			same(written, shown)
	})
	if at < 0 {
		return false
	}
	after := slices.Clone(known.echoes[at+1:])
	known.echoes = append(slices.DeleteFunc(known.echoes[:at], func(written metav1.Object) bool {
		return kindOf(written) == kindOf(shown) && written.GetName() == shown.GetName() // passed over
	}), after...)
	known.shows(shown)
	if known.empty() && len(known.echoes) == 0 {
		delete(a.recent.services, service)
	}
	return true
}

// CaughtUp reports whether the caches show what was written of a service, which is
// not being reconciled: at most events are outstanding that came for another reason.
func (a *Applier) CaughtUp(service types.NamespacedName) bool {
	a.recent.mu.Lock()
	defer a.recent.mu.Unlock()
	known := a.recent.services[service]
	if known != nil && !known.empty() {
		return false
	}
	delete(a.recent.services, service)
	return true
}

// Behind returns the services of which the caches may not show what was written,
// for at least so long. They always do, unless an object was deleted while a watch
// was broken; and then nothing else would name the service.
func (a *Applier) Behind(since time.Duration) (services []types.NamespacedName) {
	a.recent.mu.Lock()
	defer a.recent.mu.Unlock()
	for service, known := range a.recent.services {
		if a.Clock.Since(known.noted) >= since { // all else may change meanwhile
			services = append(services, service)
		}
	}
	return services
}

// Forget forgets what was written and reported of a service that is no longer
// reconciled.
func (a *Applier) Forget(service types.NamespacedName) {
	a.recent.forget(service)
	a.told.news(service, nil)
}

// newest returns the newer one of what is remembered of an object and what a
// cache has of it, nil for nothing, and forgets the former where the cache shows
// it, or what came after it.
func newest[T any, P object[T]](remembered *P, cached P, shown string) P {
	if *remembered == nil {
		return cached
	}
	version := (*remembered).GetResourceVersion()
	if !older(shown, version) || cached != nil && !older(cached.GetResourceVersion(), version) {
		*remembered = nil
		return cached
	}
	return *remembered
}

// older tells whether a resourceVersion is known to be older than another of
// the same kind.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// noteSlice remembers a slice of this controller, nil for one that is gone.
func (a *answers) noteSlice(name string, slice *discoveryv1.EndpointSlice) {
	if slice == nil || !export.IsManaged(slice) {
		delete(a.endpointSlices, name)
		return
	}
	a.endpointSlices[name] = slice
}

// noteDeleted remembers that a slice was deleted.
func (a *answers) noteDeleted(slice *discoveryv1.EndpointSlice) {
	a.noteSlice(slice.Name, nil)
	a.deleted[slice.UID] = slice.UID != ""
}

// withoutDeleted returns the cached slices without those that were deleted, and
// forgets the deletions that the caches show.
func (a *answers) withoutDeleted(cached []*discoveryv1.EndpointSlice) (left []*discoveryv1.EndpointSlice) {
	deleted := map[types.UID]bool{}
	for _, slice := range cached {
		if a.deleted[slice.UID] {
			deleted[slice.UID] = true
		} else {
			left = append(left, slice)
		}
	}
	a.deleted = deleted
	return left
}

func (a *answers) empty() bool {
	return a.serviceImport == nil && a.serviceExport == nil && a.derivedService == nil &&
		len(a.endpointSlices) == 0 && len(a.deleted) == 0
}

// shows forgets an object of which the caches show the version that is remembered.
func (a *answers) shows(object metav1.Object) {
	is := func(remembered metav1.Object) bool {
		return remembered.GetResourceVersion() == object.GetResourceVersion()
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
		if remembered := a.endpointSlices[shown.Name]; remembered != nil && is(remembered) {
			delete(a.endpointSlices, shown.Name)
		}
	}
}

// strip drops what no cache holds.
func strip[T any, P object[T]](answer P) P {
	if answer != nil {
		answer.SetManagedFields(nil)
	}
	return answer
}

// SPDX-License-Identifier: Apache-2.0

package apply

import (
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
	noted          time.Time                             // last
}

// recentFor is for how long anything is remembered. Caches that are behind for
// longer are believed again: resourceVersions may have gone back, where an etcd
// was restored.
const recentFor = time.Minute

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
		r.services[service] = &answers{endpointSlices: map[string]*discoveryv1.EndpointSlice{}}
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
	if known.empty() {
		a.recent.forget(observed.Service)
	}
}

// A Version names an object that the caches show, and its resourceVersion.
type Version struct{ Kind, Name, ResourceVersion string }

// VersionOf returns the version of an object of the kinds that an Applier writes.
func VersionOf(object metav1.Object) Version {
	return Version{kindOf(object), object.GetName(), object.GetResourceVersion()}
}

// Echo reports whether the caches show no more of an object than this Applier
// wrote. What they show is remembered no longer.
func (a *Applier) Echo(service types.NamespacedName, shown Version) bool {
	a.recent.mu.Lock()
	defer a.recent.mu.Unlock()
	known := a.recent.services[service]
	if known == nil {
		return false
	}
	last := ""
	if object := known.object(shown); object != nil {
		last = object.GetResourceVersion()
	}
	switch order, err := resourceversion.CompareResourceVersion(shown.ResourceVersion, last); {
	case err != nil || order > 0:
		return false
	case order == 0:
		known.forget(shown)
		if known.empty() {
			delete(a.recent.services, service)
		}
	}
	return true
}

// Behind returns the services of which the caches do not show what was written,
// for at least so long. They always do, unless an object was deleted while a watch
// was broken; and then nothing else would name the service.
func (a *Applier) Behind(since time.Duration) (services []types.NamespacedName) {
	a.recent.mu.Lock()
	defer a.recent.mu.Unlock()
	for service, known := range a.recent.services {
		if a.Clock.Since(known.noted) >= since {
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

func (a *answers) empty() bool {
	return a.serviceImport == nil && a.serviceExport == nil && a.derivedService == nil && len(a.endpointSlices) == 0
}

// object is what is remembered of an object, nil for nothing.
func (a *answers) object(named Version) metav1.Object {
	switch {
	case named.Kind == v1beta1.ServiceImportKindName && a.serviceImport != nil:
		return a.serviceImport
	case named.Kind == v1beta1.ServiceExportKindName && a.serviceExport != nil:
		return a.serviceExport
	case named.Kind == "Service" && a.derivedService != nil && a.derivedService.Name == named.Name:
		return a.derivedService
	case named.Kind == "EndpointSlice" && a.endpointSlices[named.Name] != nil:
		return a.endpointSlices[named.Name]
	}
	return nil
}

func (a *answers) forget(named Version) {
	switch named.Kind {
	case v1beta1.ServiceImportKindName:
		a.serviceImport = nil
	case v1beta1.ServiceExportKindName:
		a.serviceExport = nil
	case "Service":
		a.derivedService = nil
	case "EndpointSlice":
		delete(a.endpointSlices, named.Name)
	}
}

// strip drops what no cache holds.
func strip[T any, P object[T]](answer P) P {
	if answer != nil {
		answer.SetManagedFields(nil)
	}
	return answer
}

// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"maps"
	"math"
	"slices"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A Store has the slices that one member publishes, as far as its limits admit them. Only one goroutine may list, put and
// remove slices; all other methods are safe for concurrent use.
type Store struct {
	cluster string
	limits  Limits
	memory  *Pool

	mu     sync.RWMutex
	synced bool
	content
	excess Excess
}

// content has services and their slices, by name, and the totals of what the services count.
type content struct {
	services         map[types.NamespacedName]service
	slices           map[types.NamespacedName]*slice
	endpoints, bytes int
}

// A service is the stored part of a service. It is immutable, except that slices may be appended.
type service struct {
	slices []*slice
	// weight is the weight of the slices or, if there are none, of the copies in the local cluster. The service counts no
	// less than least: see CountCopies.
	weight, least Weight
	// withheld is set if the whole service is left out until the next list. Its copies in the local cluster, if there are any, are
	// used instead.
	withheld bool
}

// A slice is immutable.
type slice struct {
	name, service types.NamespacedName
	packed        *export.Packed
	weight        Weight
}

func sliceOf(published *discoveryv1.EndpointSlice) *slice {
	return &slice{
		name: types.NamespacedName{Namespace: published.Namespace, Name: published.Name}, service: export.ServiceOf(published),
		packed: export.Pack(published), weight: WeightOf(published),
	}
}

func (s service) counts() Weight {
	return Weight{Endpoints: max(s.weight.Endpoints, s.least.Endpoints), Bytes: max(s.weight.Bytes, s.least.Bytes)}
}

// without returns the service without a slice.
func (s service) without(gone *slice) service {
	s.slices = slices.DeleteFunc(slices.Clone(s.slices), func(each *slice) bool { return each == gone })
	s.weight = s.weight.Plus(Weight{Endpoints: -gone.weight.Endpoints, Bytes: -gone.weight.Bytes})
	return s
}

// set replaces a service.
func (c *content) set(name types.NamespacedName, is service) {
	before := c.services[name].counts()
	c.services[name] = is
	c.endpoints += is.counts().Endpoints - before.Endpoints
	c.bytes += is.counts().Bytes - before.Bytes
}

// drop removes a service without slices.
func (c *content) drop(name types.NamespacedName) {
	c.set(name, service{})
	delete(c.services, name)
}

// placesOf returns imported services, which count as their copies.
func placesOf(imported map[types.NamespacedName]Weight) content {
	c := content{services: make(map[types.NamespacedName]service, len(imported)), slices: map[types.NamespacedName]*slice{}}
	for name, weight := range imported {
		c.set(name, service{weight: weight})
	}
	return c
}

// NewStore returns the store of a member, which takes its memory from a Pool. Until the member is listed, the imported
// services keep their place.
func NewStore(cluster string, limits Limits, memory *Pool, imported map[types.NamespacedName]Weight) *Store {
	s := &Store{cluster: cluster, limits: limits, memory: memory, excess: Excess{}, content: placesOf(imported)}
	s.hold()
	return s
}

// Close gives back the member's part of the memory; the store takes no more of it. The slices stay.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memory.Hold(s.cluster, 0)
	s.memory = NewPool(math.MaxInt)
}

// Limits returns the member's own limits.
func (s *Store) Limits() Limits { return s.limits }

// Excess returns the exceeded limits in a new map.
func (s *Store) Excess() Excess {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.excess)
}

// Synced reports whether the member was listed since it joined or its credential changed. It never turns false again: an
// unreachable member stays as last seen.
func (s *Store) Synced() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced
}

// Read returns the slices that the member publishes for a service, in no order. They are not complete before the store is
// Synced, or while a limit withholds the service: use the copies then.
func (s *Store) Read(service types.NamespacedName) (published []*export.Packed, complete bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	is := s.services[service]
	for _, each := range is.slices {
		published = append(published, each.packed)
	}
	return published, s.synced && !is.withheld
}

// Encoded returns the encoded size of the slices of a service in bytes, 0 if there are none. It decodes nothing.
func (s *Store) Encoded(service types.NamespacedName) int {
	published, _ := s.Read(service)
	return export.EncodedSize(published)
}

// Services returns every service with a published slice.
func (s *Store) Services() (all []types.NamespacedName) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for name, is := range s.services {
		if len(is.slices) > 0 {
			all = append(all, name)
		}
	}
	return all
}

// Published returns the number of slices that the member publishes.
func (s *Store) Published() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.slices)
}

// Put stores a slice, unless a limit refuses it: then the stored slice of that name stays. It returns the services that
// changed. Only the next list admits a new service that was left out, as a whole.
func (s *Store) Put(published *discoveryv1.EndpointSlice) (changed []types.NamespacedName) {
	is := sliceOf(published)
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.slices[is.name]
	if old != nil && old.packed.Equal(is.packed) {
		return nil
	}
	if is.service.Name == "" || old != nil && old.service != is.service {
		changed, old = s.remove(is.name), nil
	}
	of, known := s.services[is.service]
	switch {
	case is.service.Name == "" || of.withheld: // it belongs to no service anymore, or to one that is left out
		return changed
	case old != nil:
		of = of.without(old)
	}
	limit := Services
	if _, left := s.excess[Services]; known || !left { // a service that was left out would be incomplete
		limit = s.admit(&s.content, of, is)
	}
	switch {
	case limit == "":
		s.hold()
		return append(changed, is.service)
	case limit != Services && !known:
		s.set(is.service, service{withheld: true})
	}
	s.excess[limit] = is.service.String()
	return changed
}

// Remove removes a slice, and returns the services that changed.
func (s *Store) Remove(gone *discoveryv1.EndpointSlice) (changed []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(types.NamespacedName{Namespace: gone.Namespace, Name: gone.Name})
}

func (s *Store) remove(name types.NamespacedName) (changed []types.NamespacedName) {
	old := s.slices[name]
	if old == nil {
		return nil
	}
	delete(s.slices, name)
	if is := s.services[old.service].without(old); len(is.slices) > 0 {
		s.set(old.service, is)
	} else {
		s.drop(old.service)
	}
	s.hold()
	return []types.NamespacedName{old.service}
}

// CountCopies makes a service count no less than its copies, which stay while its slices cannot be read. Otherwise, a member
// could exceed its limits by breaking its published slices. Pass the zero Weight if no copies stay.
func (s *Store) CountCopies(service types.NamespacedName, copies Weight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, known := s.services[service]
	if !known || is.least == copies { // counting would give back what a list claims meanwhile
		return
	}
	is.least = copies
	s.set(service, is)
	s.hold()
}

// admit adds a slice to a service, or returns the limit that the service would exceed; empty means admitted. A service
// that does not grow can only exceed SliceBytes.
func (s *Store) admit(to *content, of service, is *slice) Limit {
	before, known := to.services[is.service]
	of.weight = of.weight.Plus(is.weight)
	endpoints := of.counts().Endpoints - before.counts().Endpoints
	bytes := of.counts().Bytes - before.counts().Bytes
	switch {
	case !known && len(to.services) >= s.limits.Services:
		return Services
	case is.weight.Bytes-sizeOfSlice > s.limits.SliceBytes:
		return SliceBytes
	case endpoints > 0 && to.endpoints+endpoints > s.limits.Endpoints:
		return Endpoints
	case bytes > 0 && !s.memory.Claim(s.cluster, to.bytes+bytes):
		return Memory
	}
	of.slices = append(of.slices, is) // not before: the array would keep a refused slice
	to.slices[is.name] = is
	to.set(is.service, of)
	return ""
}

// hold counts the memory of the stored services.
func (s *Store) hold() { s.memory.Hold(s.cluster, s.bytes) }

// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// After a list that left something out, the next one waits relistAfter, and twice as long each time up to relistAtMost,
// so that a member that stays at its limits is seldom listed.
const (
	relistAfter  = 5 * time.Second
	relistAtMost = 10 * time.Minute
)

// A Store holds the slices that one member publishes, as far as its limits admit them. One goroutine lists and changes; all
// other methods are safe for concurrent use.
type Store struct {
	cluster string
	limits  Limits
	memory  *Pool
	// again has the member listed again: see List. It is nil once it was called.
	again atomic.Pointer[func()]
	// truncated is the number of consecutive lists that left something out.
	truncated atomic.Int32

	mu     sync.RWMutex
	synced bool
	content
	excess Excess
}

// content is services and their slices, by name, and what the services count as, all together.
type content struct {
	services         map[types.NamespacedName]service
	slices           map[types.NamespacedName]*slice
	endpoints, bytes int
}

// A service is what is held of a service. It is immutable, but for what is appended to its slices.
type service struct {
	slices []*slice
	// weight is that of the slices or, if there are none, of the copies, whose place the service has. It counts as least, if
	// that is more: see Keep.
	weight, least Weight
	// imported is set if the service was imported when the list began, which does not evict it.
	imported bool
	// withheld is set if the last list left out the service as a whole although it is imported, or because a slice of it is too
	// large. Its copies in the local cluster count.
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
		name: nameOf(published), service: export.ServiceOf(published), packed: export.Pack(published), weight: WeightOf(published),
	}
}

func nameOf(published *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: published.Namespace, Name: published.Name}
}

func (s service) counts() Weight { return s.weight.atLeast(s.least) }

// without returns the service without a slice.
func (s service) without(gone *slice) service {
	s.slices = slices.DeleteFunc(slices.Clone(s.slices), func(each *slice) bool { return each == gone })
	s.weight = s.weight.minus(gone.weight)
	return s
}

// set replaces a service.
func (c *content) set(name types.NamespacedName, is service) {
	before := c.services[name].counts()
	c.services[name] = is
	c.endpoints += is.counts().Endpoints() - before.Endpoints()
	c.bytes += is.counts().Bytes - before.Bytes
}

// drop removes a service without slices.
func (c *content) drop(name types.NamespacedName) {
	c.set(name, service{})
	delete(c.services, name)
}

// placesOf returns the places of imported services.
func placesOf(imported map[types.NamespacedName]Weight) content {
	c := content{services: make(map[types.NamespacedName]service, len(imported)), slices: map[types.NamespacedName]*slice{}}
	for name, weight := range imported {
		c.set(name, service{weight: weight, imported: true})
	}
	return c
}

// NewStore returns the store of a member, with its part of the memory. Until the member is listed, it
// holds the place of what is imported of it.
func NewStore(cluster string, limits Limits, memory *Pool, imported map[types.NamespacedName]Weight) *Store {
	s := &Store{cluster: cluster, limits: limits, memory: memory, excess: Excess{}}
	s.count(func() { s.content = placesOf(imported) })
	return s
}

// Close gives back the member's part of the memory, of which the store takes no more. What it holds stays.
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

// Synced reports whether the member was listed since it joined or its credential changed. It never turns false again: a
// silent member stays as last seen.
func (s *Store) Synced() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.synced
}

// Read returns the slices that the member publishes for a service, in no order. They are not complete before it is Synced, and
// while a limit excludes all slices of an imported service: then their copies count.
func (s *Store) Read(service types.NamespacedName) (published []*export.Packed, complete bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	is := s.services[service]
	for _, each := range is.slices {
		published = append(published, each.packed)
	}
	return published, s.synced && !is.withheld
}

// Encoded returns how large the slices of a service are in encoded form, 0 if there are none. It decodes none.
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

// Put takes a slice, unless a limit refuses it: then the one with its name stays. It returns the services that changed. While
// anything is left out, new services are admitted by a list alone, as a whole.
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
	case is.service.Name == "": // it belongs to no service anymore
		return changed
	case of.withheld:
		s.askForList()
		return changed
	case old != nil:
		of = of.without(old)
	}
	var limit Limit
	for _, each := range []Limit{Memory, Endpoints, Services} {
		if _, left := s.excess[each]; left && !known {
			limit = each
		}
	}
	if limit == "" {
		s.count(func() { limit = s.admit(&s.content, of, is) })
	}
	if limit == "" {
		return append(changed, is.service)
	}
	if limit == SliceBytes && !known {
		s.set(is.service, service{withheld: true}) // its other slices are not all of it
	}
	s.excess[limit] = is.service.String()
	s.askForList()
	return changed
}

// Remove removes a slice, and returns the services that changed.
func (s *Store) Remove(gone *discoveryv1.EndpointSlice) (changed []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(nameOf(gone))
}

func (s *Store) remove(name types.NamespacedName) (changed []types.NamespacedName) {
	old := s.slices[name]
	if old == nil {
		if len(s.excess) > 0 { // perhaps it was left out
			s.askForList()
		}
		return nil
	}
	delete(s.slices, name)
	s.count(func() {
		if is := s.services[old.service].without(old); len(is.slices) > 0 {
			s.set(old.service, is)
		} else {
			s.drop(old.service)
		}
	})
	return []types.NamespacedName{old.service}
}

// Keep has a service count as its copies do, if these have more weight than its slices: they stay while its slices cannot be
// read. Otherwise, a member could exceed its limits by breaking what it published. Without copies that stay the weight is
// the zero Weight.
func (s *Store) Keep(service types.NamespacedName, copies Weight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is, known := s.services[service]
	if !known || is.least == copies { // to count it would give back what a list claims meanwhile
		return
	}
	is.least = copies
	s.count(func() { s.set(service, is) })
}

// admit adds a slice to what a service has besides. It returns a limit that the service would exceed then, empty for none. A
// service that does not grow exceeds none but SliceBytes.
func (s *Store) admit(to *content, of service, is *slice) Limit {
	before, known := to.services[is.service]
	of.weight = of.weight.Plus(is.weight)
	endpoints := of.counts().Endpoints() - before.counts().Endpoints()
	bytes := of.counts().Bytes - before.counts().Bytes
	switch {
	case is.weight.Bytes-sizeOfSlice > s.limits.SliceBytes:
		return SliceBytes
	case !known && len(to.services) >= s.limits.Services:
		return Services
	case endpoints > 0 && to.endpoints+endpoints > s.limits.Endpoints:
		return Endpoints
	case bytes > 0 && !s.memory.Claim(s.cluster, to.bytes+bytes, s.askForList):
		return Memory
	}
	of.slices = append(of.slices, is) // not before: the array of the service would keep what is refused
	to.slices[is.name] = is
	to.set(is.service, of)
	return ""
}

// count changes what is counted. If it is less of what anything is left out for, there may be room for it.
func (s *Store) count(change func()) {
	services, endpoints, bytes := len(s.services), s.endpoints, s.bytes
	change()
	s.memory.Hold(s.cluster, s.bytes)
	if s.excess[Services] != "" && len(s.services) < services || s.excess[Endpoints] != "" && s.endpoints < endpoints ||
		s.excess[Memory] != "" && s.bytes < bytes {
		s.askForList()
	}
}

// askForList has the member listed again, after a delay that grows with each list that leaves something out: there may be room
// for it. It does not block.
func (s *Store) askForList() {
	if again := s.again.Swap(nil); again != nil {
		time.AfterFunc(s.relistDelay(), *again)
	}
}

func (s *Store) relistDelay() time.Duration {
	return min(relistAtMost, relistAfter<<min(10, max(0, s.truncated.Load()-1)))
}

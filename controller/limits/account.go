// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"maps"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

// After a list that left something out, the next one waits relistAfter, and twice as long each time up to relistAtMost,
// so that a member that stays at its limits is seldom listed.
const (
	relistAfter  = 5 * time.Second
	relistAtMost = 10 * time.Minute
)

// An Account counts what one member contributes, and decides what of it is admitted. One goroutine lists and changes;
// all other methods are safe for concurrent use.
type Account struct {
	cluster string
	limits  Limits
	memory  *Pool // nil for no limit
	relist  chan struct{}

	mu sync.Mutex
	tally
	// withheld are the services that the last list left out as a whole although they are imported, or because a slice of
	// them is too large. Their copies in the local cluster count.
	withheld map[types.NamespacedName]Weight
	excess   Excess
	// truncated is the number of consecutive lists that left something out.
	truncated int
}

// tally is what services count as, all together.
type tally struct {
	services         map[types.NamespacedName]counted
	endpoints, bytes int
}

// counted is the weight of the slices of a service, and the least that it counts as: see Account.Keep.
type counted struct{ slices, least Weight }

func (c counted) weight() Weight { return c.slices.atLeast(c.least) }

// set replaces what a service counts as.
func (t *tally) set(service types.NamespacedName, is counted) {
	before := t.services[service].weight()
	if t.services[service] = is; is == (counted{}) {
		delete(t.services, service)
	}
	t.endpoints += is.weight().Endpoints() - before.Endpoints()
	t.bytes += is.weight().Bytes - before.Bytes
}

func tallyOf(services map[types.NamespacedName]Weight) tally {
	t := tally{services: make(map[types.NamespacedName]counted, len(services))}
	for service, weight := range services {
		t.set(service, counted{slices: weight})
		t.services[service] = counted{slices: weight} // also if its copies were deleted
	}
	return t
}

// NewAccount returns the account of a member, with its part of the memory; a nil Pool is no limit. Until the member is
// listed, it holds the place of what is imported of it.
func NewAccount(cluster string, limits Limits, memory *Pool, imported map[types.NamespacedName]Weight) *Account {
	a := &Account{
		cluster: cluster, limits: limits, memory: memory, relist: make(chan struct{}, 1),
		withheld: map[types.NamespacedName]Weight{}, excess: Excess{},
	}
	a.count(func() { a.tally = tallyOf(imported) })
	return a
}

// Close gives back the member's part of the memory, of which the account takes no more.
func (a *Account) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count(func() { a.tally = tallyOf(nil) })
	a.memory = nil
}

// Limits returns the member's own limits.
func (a *Account) Limits() Limits { return a.limits }

// Excess returns the exceeded limits in a new map.
func (a *Account) Excess() Excess {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.excess)
}

// IsWithheld reports whether the limits exclude all slices of a service, so that their copies count.
func (a *Account) IsWithheld(service types.NamespacedName) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, withheld := a.withheld[service]
	return withheld
}

// Admit reports whether a slice of a service may take the place of an older one, nil for none, and counts it then. One
// that does not grow may. While anything is left out, new services are admitted by a list alone, as a whole.
func (a *Account) Admit(service types.NamespacedName, old, slice *discoveryv1.EndpointSlice) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, withheld := a.withheld[service]; withheld {
		a.askForList()
		return false
	}
	is, known := a.services[service]
	is.slices = is.slices.minus(WeightOf(old)).Plus(WeightOf(slice))
	var limit Limit
	for _, each := range []Limit{Memory, Endpoints, Services} {
		if _, left := a.excess[each]; left && !known {
			limit = each
		}
	}
	if limit == "" {
		limit = a.exceeds(&a.tally, service, is, slice)
	}
	if limit == "" {
		a.count(func() { a.set(service, is) })
		return true
	}
	if limit == SliceBytes && !known {
		a.withheld[service] = Weight{} // its other slices are not all of it
	}
	a.excess[limit] = service.String()
	a.askForList()
	return false
}

// Remove counts a slice of a service that is gone, nil for one that was not admitted.
func (a *Account) Remove(service types.NamespacedName, slice *discoveryv1.EndpointSlice) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slice != nil {
		is := a.services[service]
		if is.slices = is.slices.minus(WeightOf(slice)); is.slices == (Weight{}) {
			is = counted{} // it is nothing without a slice
		}
		a.count(func() { a.set(service, is) })
	} else if len(a.excess) > 0 { // perhaps it was left out
		a.askForList()
	}
}

// Keep has a service with slices count as its copies do, if these have more weight: they stay while its slices cannot be
// read. Otherwise, a member could exceed its limits by breaking what it published. Without copies that stay the weight is
// the zero Weight.
func (a *Account) Keep(service types.NamespacedName, copies Weight) {
	a.mu.Lock()
	defer a.mu.Unlock()
	is, known := a.services[service]
	if !known || is.least == copies { // to count it would give back what a list claims meanwhile
		return
	}
	is.least = copies
	a.count(func() { a.set(service, is) })
}

// exceeds returns a limit that a service exceeds if it counts as that because of a slice, empty for none.
func (a *Account) exceeds(of *tally, service types.NamespacedName, is counted, slice *discoveryv1.EndpointSlice) Limit {
	before, known := of.services[service]
	endpoints := is.weight().Endpoints() - before.weight().Endpoints()
	bytes := is.weight().Bytes - before.weight().Bytes
	switch {
	case slice.Size() > a.limits.SliceBytes:
		return SliceBytes
	case !known && len(of.services) >= a.limits.Services:
		return Services
	case endpoints > 0 && of.endpoints+endpoints > a.limits.Endpoints:
		return Endpoints
	case bytes > 0 && a.memory != nil && !a.memory.Claim(a.cluster, of.bytes+bytes, a.askForList):
		return Memory
	}
	return ""
}

// count changes what is counted. If it is less of what anything is left out for, there may be room for it.
func (a *Account) count(change func()) {
	services, endpoints, bytes := len(a.services), a.endpoints, a.bytes
	change()
	if a.memory != nil {
		a.memory.Hold(a.cluster, a.bytes)
	}
	if a.excess[Services] != "" && len(a.services) < services || a.excess[Endpoints] != "" && a.endpoints < endpoints ||
		a.excess[Memory] != "" && a.bytes < bytes {
		a.askForList()
	}
}

// Relist receives when the member is to be listed anew after RelistDelay: there may be room for what was left out.
func (a *Account) Relist() <-chan struct{} { return a.relist }

// RelistDelay grows with each list that leaves something out.
func (a *Account) RelistDelay() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return min(relistAtMost, relistAfter<<min(10, max(0, a.truncated-1)))
}

func (a *Account) askForList() {
	select {
	case a.relist <- struct{}{}:
	default: // a signal already pending covers this change
	}
}

// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Excess is the limits that a member exceeds, each with the name of an object
// that is left out because of it.
type Excess map[export.Limit]string

// err says what is left out, nil where nothing is.
func (e Excess) err(cluster string, limits export.Limits) error {
	var errs []error
	for _, limit := range slices.Sorted(maps.Keys(e)) {
		var text string
		switch limit {
		case export.LimitServices:
			text = fmt.Sprintf("more than %d services (--member-services): service %s is left out, and maybe others",
				limits.Services, e[limit])
		case export.LimitEndpoints:
			text = fmt.Sprintf("more than %d endpoints (--member-endpoints): those of service %s are left out, and maybe others", limits.Endpoints, e[limit])
		case export.LimitMemory:
			text = fmt.Sprintf("more than its part of the memory for slices (--max-import-memory): what is new of service %s is left out, and maybe of others", e[limit])
		case export.LimitSliceBytes:
			text = fmt.Sprintf("an EndpointSlice of more than %d bytes (--member-slice-bytes): %s is not read, and what was known of it stays", limits.SliceBytes, e[limit])
		case export.LimitImports:
			text = fmt.Sprintf("more services than its part of all imports (--max-imports): service %s is not imported, and maybe others", e[limit])
		case export.LimitClusterIPs:
			text = fmt.Sprintf("more services than its part of the cluster IPs for imports (--max-import-ips): the import of service %s has no IP, and maybe others", e[limit])
		}
		errs = append(errs, fmt.Errorf("cluster %s has %s", cluster, text))
	}
	return errors.Join(errs...)
}

// bounds counts what a sliceStore holds, and decides what it may take. One
// goroutine writes; get may be called by any.
type bounds struct {
	// exceeded is told of the limits that are exceeded when they are others
	// than before, and after each list.
	exceeded func(Excess)
	// room receives once there may be room for something that was left out.
	room chan struct{}

	counts map[types.NamespacedName]*held
	// endpoints and bytes are of all services, and of those withheld.
	endpoints, bytes int
	large            map[types.NamespacedName]struct{} // the slices that are stand-ins
	// withheld are the imported services of which the last list left out all,
	// with what the copies of their slices weigh. It is replaced, not changed.
	withheld atomic.Pointer[map[types.NamespacedName]export.Weight]
	// next is withheld of the list that comes next, and gone tells that the list
	// has more room than it could give away.
	next map[types.NamespacedName]export.Weight
	gone bool
	// account is the member's part of the memory; nil for no limit.
	account *account

	mu     sync.Mutex
	excess Excess
	// overfull is how many lists in a row left something out.
	overfull int
}

// held is what a sliceStore has of one service.
type held struct {
	slices int
	weight export.Weight
}

func newBounds() *bounds {
	b := &bounds{
		exceeded: func(Excess) {},
		room:     make(chan struct{}, 1),
		counts:   map[types.NamespacedName]*held{},
		large:    map[types.NamespacedName]struct{}{},
		excess:   Excess{},
	}
	b.withheld.Store(&map[types.NamespacedName]export.Weight{})
	return b
}

// get returns the limits that are exceeded, in a new map.
func (b *bounds) get() Excess {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.excess)
}

// set notes that a limit is exceeded that is not counted here, or no longer is,
// if service is nil.
func (b *bounds) set(limit export.Limit, service *types.NamespacedName) {
	b.mu.Lock()
	_, before := b.excess[limit]
	if delete(b.excess, limit); service != nil {
		b.excess[limit] = service.String()
	}
	b.mu.Unlock()
	if before != (service != nil) {
		b.exceeded(b.get())
	}
}

// leaves takes over what a selection leaves out of the list that comes next.
func (b *bounds) leaves(selection *export.Selection) {
	b.next = selection.Withheld()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, limit := range counted {
		delete(b.excess, limit)
	}
	first, limit, any := selection.Refused()
	b.overfull++
	if any {
		b.excess[limit] = first.String()
	} else {
		b.overfull = 0
	}
	b.gone = any && selection.Gone()
}

// counted are the limits by which services are left out of a list.
var counted = []export.Limit{export.LimitServices, export.LimitEndpoints, export.LimitMemory}

// admit decides whether a slice may take the place of what is held of it, nil
// for nothing. What is held and does not grow may always change. While something
// is left out, services come in with a list alone, which takes them whole.
func (b *bounds) admit(limits export.Limits, old, slice *discoveryv1.EndpointSlice) bool {
	service := ServiceOf(slice)
	if b.isWithheld(service) {
		b.makeRoom()
		return false
	}
	before, after := export.Weight{}, export.WeightOf(slice)
	if of := b.counts[service]; of != nil {
		before = of.weight
		after = after.Plus(before)
	}
	isNew := b.counts[service] == nil
	if old != nil && ServiceOf(old) == service {
		after = after.Minus(export.WeightOf(old))
	}
	endpoints, bytes := after.Endpoints()-before.Endpoints(), after.Bytes-before.Bytes
	left := b.get()
	var limit export.Limit
	switch {
	case isNew && (left[export.LimitServices] != "" || len(b.counts)+len(*b.withheld.Load()) >= limits.Services):
		limit = export.LimitServices
	case isNew && left[export.LimitEndpoints] != "" || endpoints > 0 && b.endpoints+endpoints > limits.Endpoints:
		limit = export.LimitEndpoints
	case isNew && left[export.LimitMemory] != "" || bytes > 0 && !b.account.claim(b.bytes+bytes):
		limit = export.LimitMemory
	default:
		return true
	}
	b.mu.Lock()
	_, known := b.excess[limit]
	b.excess[limit] = service.String()
	b.mu.Unlock()
	if !known {
		b.exceeded(b.get())
	}
	return false
}

// isWithheld reports whether the last list left out all of an imported service,
// so that the copies of its slices count. It may be called by any goroutine.
func (b *bounds) isWithheld(service types.NamespacedName) bool {
	_, withheld := (*b.withheld.Load())[service]
	return withheld
}

// replaced takes note that a slice took the place of another; nil is none.
func (b *bounds) replaced(old, slice *discoveryv1.EndpointSlice) {
	endpoints, services, bytes, large := b.endpoints, len(b.counts), b.bytes, len(b.large)
	b.add(old, -1)
	b.add(slice, 1)
	b.account.settle(b.bytes)
	b.look(large > 0)
	left := b.get()
	if left[export.LimitServices] != "" && len(b.counts) < services ||
		left[export.LimitEndpoints] != "" && b.endpoints < endpoints ||
		left[export.LimitMemory] != "" && b.bytes < bytes {
		b.makeRoom()
	}
}

// makeRoom has the slices listed anew after some time.
func (b *bounds) makeRoom() {
	select {
	case b.room <- struct{}{}:
	default: // that which is due sees this, too
	}
}

// relistDelay is how long to wait before the slices are listed anew.
func (b *bounds) relistDelay() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return min(relistAtMost, relistAfter<<min(10, max(0, b.overfull-1)))
}

// expect is called before the services of a list, as of leaves, are seen: a
// service that is withheld or was withheld until now is never taken for one that
// is not exported.
func (b *bounds) expect() {
	both := maps.Clone(*b.withheld.Load())
	maps.Copy(both, b.next)
	b.withheld.Store(&both)
}

// recount takes note of a complete list, which took all the room that there
// was before it.
func (b *bounds) recount(all []any) {
	select {
	case <-b.room:
	default:
	}
	clear(b.counts)
	clear(b.large)
	b.endpoints, b.bytes = 0, 0
	next := b.next
	b.next = nil
	b.withheld.Store(&next)
	for _, weight := range next {
		b.endpoints += weight.Endpoints()
		b.bytes += weight.Bytes
	}
	for _, object := range all {
		if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
			b.add(slice, 1)
		}
	}
	b.account.settle(b.bytes)
	if b.gone {
		b.makeRoom()
	}
	b.look(len(b.large) > 0)
	b.exceeded(b.get())
}

func (b *bounds) add(slice *discoveryv1.EndpointSlice, sign int) {
	if slice == nil {
		return
	}
	service, weight := ServiceOf(slice), export.WeightOf(slice)
	of := b.counts[service]
	if of == nil {
		of = &held{}
		b.counts[service] = of
	}
	before := of.weight
	if sign > 0 {
		of.weight = before.Plus(weight)
	} else {
		of.weight = before.Minus(weight)
	}
	b.endpoints += of.weight.Endpoints() - before.Endpoints()
	b.bytes += of.weight.Bytes - before.Bytes
	if of.slices += sign; of.slices == 0 {
		delete(b.counts, service)
	}
	name := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Name}
	switch {
	case sign < 0:
		delete(b.large, name)
	case export.IsStandIn(slice):
		b.large[name] = struct{}{}
	}
}

// look tells of slices that are too large, where there are some for the first
// time or no more.
func (b *bounds) look(told bool) {
	b.mu.Lock()
	delete(b.excess, export.LimitSliceBytes)
	for name := range b.large {
		b.excess[export.LimitSliceBytes] = name.String()
		break
	}
	b.mu.Unlock()
	if told != (len(b.large) > 0) {
		b.exceeded(b.get())
	}
}

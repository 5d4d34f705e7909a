// SPDX-License-Identifier: Apache-2.0

package member

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

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
			text = fmt.Sprintf("more than %d services (--member-services): service %s is left out, and maybe others", limits.Services, e[limit])
		case export.LimitEndpoints:
			text = fmt.Sprintf("more than %d endpoints (--member-endpoints): those of service %s are left out, and maybe others", limits.Endpoints, e[limit])
		case export.LimitSliceBytes:
			text = fmt.Sprintf("an EndpointSlice of more than %d bytes (--member-slice-bytes): %s is not read, and what was known of it stays", limits.SliceBytes, e[limit])
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

	slices  map[types.NamespacedName]int // by service
	weight  int
	large   map[types.NamespacedName]struct{} // the slices that are stand-ins
	keptOut []types.NamespacedName            // of the last list, imported already

	mu     sync.Mutex
	excess Excess
}

func newBounds() *bounds {
	return &bounds{
		exceeded: func(Excess) {},
		room:     make(chan struct{}, 1),
		slices:   map[types.NamespacedName]int{},
		large:    map[types.NamespacedName]struct{}{},
		excess:   Excess{},
	}
}

// get returns the limits that are exceeded, in a new map.
func (b *bounds) get() Excess {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.excess)
}

// leaves takes over what a selection leaves out of the list that comes next.
func (b *bounds) leaves(selection *export.Selection) {
	b.keptOut = selection.RefusedImported()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.excess, export.LimitServices)
	delete(b.excess, export.LimitEndpoints)
	if first, limit, any := selection.Refused(); any {
		b.excess[limit] = first.String()
	}
}

// admit decides whether a slice may take the place of what is held of it, nil
// for nothing. What is held and does not grow may always change. While something
// is left out, services come in with a list alone, which takes them whole.
func (b *bounds) admit(limits export.Limits, old, slice *discoveryv1.EndpointSlice) bool {
	service := ServiceOf(slice)
	weight, before := export.Weight(slice), weightOf(old)
	left := b.get()
	_, servicesLeft := left[export.LimitServices]
	_, endpointsLeft := left[export.LimitEndpoints]
	isNew := b.slices[service] == 0
	var limit export.Limit
	switch {
	case isNew && (servicesLeft || len(b.slices) >= limits.Services):
		limit = export.LimitServices
	case isNew && endpointsLeft || weight > before && b.weight-before+weight > limits.Endpoints:
		limit = export.LimitEndpoints
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

// replaced takes note that a slice took the place of another; nil is none.
func (b *bounds) replaced(old, slice *discoveryv1.EndpointSlice) {
	weight, services, large := b.weight, len(b.slices), len(b.large)
	b.add(old, -1)
	b.add(slice, 1)
	b.look(large > 0)
	b.mu.Lock()
	_, manyServices := b.excess[export.LimitServices]
	_, manyEndpoints := b.excess[export.LimitEndpoints]
	b.mu.Unlock()
	if manyServices && len(b.slices) < services || manyEndpoints && b.weight < weight {
		select {
		case b.room <- struct{}{}:
		default: // that which is due sees this, too
		}
	}
}

// recount takes note of a complete list, which took all the room that there
// was before it.
func (b *bounds) recount(all []any) {
	select {
	case <-b.room:
	default:
	}
	clear(b.slices)
	clear(b.large)
	b.weight = 0
	for _, object := range all {
		if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
			b.add(slice, 1)
		}
	}
	b.look(len(b.large) > 0)
	b.exceeded(b.get())
}

func (b *bounds) add(slice *discoveryv1.EndpointSlice, sign int) {
	if slice == nil {
		return
	}
	service := ServiceOf(slice)
	b.weight += sign * weightOf(slice)
	if b.slices[service] += sign; b.slices[service] == 0 {
		delete(b.slices, service)
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

func weightOf(slice *discoveryv1.EndpointSlice) int {
	if slice == nil {
		return 0
	}
	return export.Weight(slice)
}

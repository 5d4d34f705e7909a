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
	"github.com/clusterset-dns/clusterset-dns/controller/packed"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// Excess maps the limits that a member exceeds to the name of an object that is left out because of them.
type Excess map[export.Limit]string

// OverLimits returns what the member publishes beyond its limits, nil for nothing.
func (m *Member) OverLimits() error { return m.Excess().err(m.cluster, m.slices.limits) }

// Limits returns what the member uses of its limits.
func (m *Member) Limits() []state.Limit {
	return []state.Limit{
		{Name: "member-services", Used: len(m.Services()), Max: m.slices.limits.Services},
		{Name: "member-endpoints", Used: int(m.slices.total.Load()), Max: m.slices.limits.Endpoints},
	}
}

// err reports what is left out, nil for nothing.
func (e Excess) err(cluster string, limits export.Limits) error {
	var errs []error
	for _, limit := range slices.Sorted(maps.Keys(e)) {
		var text string
		switch limit {
		case export.LimitServices:
			text = fmt.Sprintf("more than %d services (--member-services): service %s is not imported, possibly others",
				limits.Services, e[limit])
		case export.LimitEndpoints:
			text = fmt.Sprintf(
				"more than %d endpoints (--member-endpoints): those of service %s are not imported, possibly others",
				limits.Endpoints, e[limit])
		case export.LimitMemory:
			text = fmt.Sprintf("more slices than its share of the memory (--max-import-memory): changes of service %s are not imported, possibly of others", e[limit])
		case export.LimitSliceBytes:
			text = fmt.Sprintf("an EndpointSlice of more than %d bytes: %s is not read, and its former endpoints stay", limits.SliceBytes, e[limit])
		case export.LimitImports:
			text = fmt.Sprintf("more services than its share of all imports (--max-imports): service %s is not imported, possibly others", e[limit])
		case export.LimitClusterIPs:
			text = fmt.Sprintf("more services than its share of the cluster IPs for imports: the import of service %s has no IP, possibly others", e[limit])
		}
		errs = append(errs, fmt.Errorf("cluster %s has %s", cluster, text))
	}
	return errors.Join(errs...)
}

// quota counts what a sliceStore holds and decides what it admits. One goroutine writes; get and isWithheld are safe
// for concurrent use.
type quota struct {
	// exceeded is called with the limits that are exceeded, when they change and after each list.
	exceeded func(Excess)
	// relist receives when there may be room for slices that were left out.
	relist chan struct{}

	used map[types.NamespacedName]*usage
	// number is that of the slices. It may be read at any time.
	number atomic.Int64
	// endpoints and bytes are the totals of all services, with those withheld.
	endpoints, bytes int
	total            atomic.Int64                      // endpoints, to be read at any time
	standIns         map[types.NamespacedName]struct{} // slices as of export.IsStandIn
	// withheld are the imported services that the last list left out, with the weight of the copies of their slices.
	// The map is replaced, never changed.
	withheld atomic.Pointer[map[types.NamespacedName]export.Weight]
	// nextWithheld is withheld for the list that is being read. spare reports whether that list left room unused.
	nextWithheld map[types.NamespacedName]export.Weight
	spare        bool
	// account is the member's part of the memory; nil for no limit.
	account *account

	mu     sync.Mutex
	excess Excess
	// truncated is the number of consecutive lists that left something out.
	truncated int
}

// usage is what a sliceStore holds of one service.
type usage struct {
	slices int
	weight export.Weight
}

func newQuota() *quota {
	q := &quota{
		exceeded: func(Excess) {},
		relist:   make(chan struct{}, 1),
		used:     map[types.NamespacedName]*usage{},
		standIns: map[types.NamespacedName]struct{}{},
		excess:   Excess{},
	}
	q.withheld.Store(&map[types.NamespacedName]export.Weight{})
	return q
}

// get returns the exceeded limits in a new map.
func (q *quota) get() Excess {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maps.Clone(q.excess)
}

// set records that a limit which is counted elsewhere is exceeded by a service, or no longer exceeded if service is
// nil.
func (q *quota) set(limit export.Limit, service *types.NamespacedName) {
	q.mu.Lock()
	_, before := q.excess[limit]
	if delete(q.excess, limit); service != nil {
		q.excess[limit] = service.String()
	}
	q.mu.Unlock()
	if before != (service != nil) {
		q.exceeded(q.get())
	}
}

// noteSelection records what a selection left out of the list that is being read.
func (q *quota) noteSelection(selection *export.Selection) {
	q.nextWithheld = selection.Withheld()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, limit := range counted {
		delete(q.excess, limit)
	}
	first, limit, any := selection.Refused()
	q.truncated++
	if any {
		q.excess[limit] = first.String()
	} else {
		q.truncated = 0
	}
	q.spare = any && selection.Gone()
}

// counted are the limits that are counted here.
var counted = []export.Limit{export.LimitServices, export.LimitEndpoints, export.LimitMemory}

// admit reports whether a slice may replace the held one, nil for none. An update that does not grow is always
// admitted. While a limit is exceeded, new services are only admitted by a list, which takes them as a whole.
func (q *quota) admit(limits export.Limits, old, slice *discoveryv1.EndpointSlice) bool {
	service := ServiceOf(slice)
	if q.isWithheld(service) {
		q.requestRelist()
		return false
	}
	before, after := export.Weight{}, export.WeightOf(slice)
	if of := q.used[service]; of != nil {
		before = of.weight
		after = after.Plus(before)
	}
	isNew := q.used[service] == nil
	if old != nil && ServiceOf(old) == service {
		after = after.Minus(export.WeightOf(old))
	}
	endpoints, bytes := after.Endpoints()-before.Endpoints(), after.Bytes-before.Bytes
	left := q.get()
	var limit export.Limit
	switch {
	case isNew && (left[export.LimitServices] != "" || len(q.used)+len(*q.withheld.Load()) >= limits.Services):
		limit = export.LimitServices
	case isNew && left[export.LimitEndpoints] != "" || endpoints > 0 && q.endpoints+endpoints > limits.Endpoints:
		limit = export.LimitEndpoints
	case isNew && left[export.LimitMemory] != "" || bytes > 0 && !q.account.claim(q.bytes+bytes):
		limit = export.LimitMemory
	default:
		return true
	}
	q.mu.Lock()
	_, known := q.excess[limit]
	q.excess[limit] = service.String()
	q.mu.Unlock()
	if !known {
		q.exceeded(q.get())
	}
	return false
}

// isWithheld reports whether the last list left out an imported service, so that the copies of its slices count.
func (q *quota) isWithheld(service types.NamespacedName) bool {
	_, withheld := (*q.withheld.Load())[service]
	return withheld
}

// noteReplaced counts a slice that replaced another; nil is none.
func (q *quota) noteReplaced(old, slice *discoveryv1.EndpointSlice) {
	endpoints, services, bytes, large := q.endpoints, len(q.used), q.bytes, len(q.standIns)
	q.add(old, -1)
	q.add(slice, 1)
	switch {
	case old == nil && slice != nil:
		q.number.Add(1)
	case old != nil && slice == nil:
		q.number.Add(-1)
	}
	q.total.Store(int64(q.endpoints))
	q.account.settle(q.bytes)
	q.noteStandIns(large > 0)
	left := q.get()
	if left[export.LimitServices] != "" && len(q.used) < services ||
		left[export.LimitEndpoints] != "" && q.endpoints < endpoints ||
		left[export.LimitMemory] != "" && q.bytes < bytes {
		q.requestRelist()
	}
}

// requestRelist has the slices relisted after relistDelay.
func (q *quota) requestRelist() {
	select {
	case q.relist <- struct{}{}:
	default: // a signal already pending covers this change
	}
}

// relistDelay returns the backoff before the next relist.
func (q *quota) relistDelay() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return min(relistAtMost, relistAfter<<min(10, max(0, q.truncated-1)))
}

// beginList is called before the services of a list become visible. Services withheld by this list or the last one
// count as withheld until endList, so that none is taken for one that is not exported.
func (q *quota) beginList() {
	both := maps.Clone(*q.withheld.Load())
	maps.Copy(both, q.nextWithheld)
	q.withheld.Store(&both)
}

// endList counts a complete list. It used the room that was signaled before it.
func (q *quota) endList(all []*packed.Slice) {
	select {
	case <-q.relist:
	default:
	}
	clear(q.used)
	clear(q.standIns)
	q.endpoints, q.bytes = 0, 0
	next := q.nextWithheld
	q.nextWithheld = nil
	q.withheld.Store(&next)
	for _, weight := range next {
		q.endpoints += weight.Endpoints()
		q.bytes += weight.Bytes
	}
	q.number.Store(int64(len(all)))
	for _, slice := range all {
		q.add(slice.Open(), 1)
	}
	q.total.Store(int64(q.endpoints))
	q.account.settle(q.bytes)
	if q.spare {
		q.requestRelist()
	}
	q.noteStandIns(len(q.standIns) > 0)
	q.exceeded(q.get())
}

func (q *quota) add(slice *discoveryv1.EndpointSlice, sign int) {
	if slice == nil {
		return
	}
	service, weight := ServiceOf(slice), export.WeightOf(slice)
	of := q.used[service]
	if of == nil {
		of = &usage{}
		q.used[service] = of
	}
	before := of.weight
	if sign > 0 {
		of.weight = before.Plus(weight)
	} else {
		of.weight = before.Minus(weight)
	}
	q.endpoints += of.weight.Endpoints() - before.Endpoints()
	q.bytes += of.weight.Bytes - before.Bytes
	if of.slices += sign; of.slices == 0 {
		delete(q.used, service)
	}
	name := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Name}
	switch {
	case sign < 0:
		delete(q.standIns, name)
	case export.IsStandIn(slice):
		q.standIns[name] = struct{}{}
	}
}

// noteStandIns reports slices that are too large, if there were none before or are none anymore.
func (q *quota) noteStandIns(before bool) {
	q.mu.Lock()
	delete(q.excess, export.LimitSliceBytes)
	for name := range q.standIns {
		q.excess[export.LimitSliceBytes] = name.String()
		break
	}
	q.mu.Unlock()
	if before != (len(q.standIns) > 0) {
		q.exceeded(q.get())
	}
}

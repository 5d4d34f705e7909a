// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/input"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/mcsapi"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/packed"
)

// plans hold what the last pass over each service decided, if that succeeded. A slice that changes then costs no other
// slice of its service. It is safe for concurrent use.
type plans struct {
	mu sync.Mutex
	of map[types.NamespacedName]*plan
}

// A plan is a merge.Plan and what else must be the same for it to hold.
type plan struct {
	*merge.Plan
	access *mcsapi.Access
	// problems are those of the exports, by cluster. Two slices may claim to be the same.
	problems map[string][]export.Problem
}

func (p *plans) get(service types.NamespacedName) *plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[service]
}

// set replaces the plan of a service; nil removes it.
func (p *plans) set(service types.NamespacedName, next *plan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[types.NamespacedName]*plan{}
	}
	if p.of[service] = next; next == nil {
		delete(p.of, service)
	}
}

// reconcileSlices reconciles the slices of a service that changed, and nothing else. It returns false if that does not
// suffice; then everything of the service is due.
func (r *Reconciler) reconcileSlices(ctx context.Context, service types.NamespacedName,
	changes map[sliceKey][]*packed.Slice, reading informer.Reading,
) bool {
	plan := r.plans.get(service)
	if plan == nil {
		return false
	}
	shown := r.Local.EndpointSlices.Indexer().LastStoreSyncResourceVersion()
	var desired []*discoveryv1.EndpointSlice
	for key, states := range changes {
		slice := r.planned(plan, service, key, states)
		if slice == nil {
			return false
		}
		desired = append(desired, slice)
	}
	cached := make([]*discoveryv1.EndpointSlice, 0, len(desired))
	for _, slice := range desired {
		cached = append(cached, r.Local.EndpointSlice(slice.Namespace, slice.Name))
	}
	// What was read may predate an outage.
	if access, _ := r.API.Access(); access != plan.access || !r.Gate.Holds(reading) {
		return false
	}
	return r.Applier.ApplySlices(ctx, plan.access, plan.Observed(), cached, desired, shown)
}

// planned returns the desired object of a slice that went through the states, nil if more than that changed.
func (r *Reconciler) planned(plan *plan, service types.NamespacedName, key sliceKey,
	seen []*packed.Slice,
) *discoveryv1.EndpointSlice {
	view := plan.View(key.cluster)
	if view == nil || len(plan.problems[key.cluster]) > 0 {
		return nil
	}
	var slices []export.Slice
	var valid, demote bool
	if key.cluster == r.Cluster {
		states := upTo(seen, r.Local.EndpointSlice(key.namespace, key.name))
		slices, valid = export.OwnSlices(view, states)
		demote = input.Standing(r.Local.Namespace(r.Namespace)).Demote
	} else {
		m := r.Members.Get(key.cluster)
		if m == nil {
			return nil
		}
		states := upTo(seen, m.Slice(key.namespace, key.name))
		slices, valid = export.PublishedSlices(r.Source(m), service, view.Spec, states)
		// The verdict is not older than the slice: see input.Gather.
		verdict := r.Tracker.Verdict(key.cluster)
		demote = verdict.Demote
		valid = valid && m.Synced() && !m.Withheld(service) && !verdict.Keep && verdict.State != liveness.Gone
	}
	if !valid || !plan.Keeps(key.cluster, demote, slices) {
		return nil
	}
	return plan.Slice(key.cluster, &slices[len(slices)-1])
}

// upTo returns the states that were seen, and the current one, which may be newer; nil means that it is gone.
func upTo(seen []*packed.Slice, current *discoveryv1.EndpointSlice) (states []*discoveryv1.EndpointSlice) {
	if current == nil {
		return nil
	}
	last := packed.New(current)
	for i, state := range seen {
		if i < len(seen)-1 || !state.Equal(last) {
			states = append(states, state.Open())
		}
	}
	return append(states, current)
}

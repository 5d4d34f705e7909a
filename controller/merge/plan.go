// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
)

// A Plan is what a merge decided for all slices of a service. With it, a slice that changes costs no other: if Keeps is
// true, merging again would change the one object that Slice returns, and nothing else. It is not safe for concurrent
// use.
type Plan struct {
	observed Observed
	agreed   decision
	covered  covers
	cuts     *cuts // by weights, nil for none
	srvs     srvs
	hints    *locality.Hints
	parts    map[string]part // by cluster
}

// A part is what a Plan knows of one contribution.
type part struct {
	spec   *export.Spec
	demote bool
	// outside is whether the cluster is outside of the border.
	outside bool
	// level is that of its endpoints, and counts that as which they count for others.
	level, counts level
}

func newPlan(observed Observed, agreed decision, contributions []Contribution, order order, hints *locality.Hints,
) *Plan {
	parts := make(map[string]part, len(contributions))
	for _, contribution := range contributions {
		parts[contribution.View.Cluster] = order.of(contribution)
	}
	cuts := weigh(observed, contributions, order, parts)
	return &Plan{
		observed: observed, agreed: agreed, covered: coverage(contributions, parts, cuts), cuts: cuts, srvs: order.srvs(),
		hints: hints, parts: parts,
	}
}

// View returns the view of a cluster without its slices, nil if the plan has none of it.
func (p *Plan) View(cluster string) *export.View {
	part, known := p.parts[cluster]
	if !known {
		return nil
	}
	return &export.View{Cluster: cluster, Service: p.observed.Service, Spec: part.spec}
}

// Observed returns what the merge observed.
func (p *Plan) Observed() Observed { return p.observed }

// Keeps reports whether the plan stays the same while a slice of a view of the cluster goes through the states, of
// which the merge may have seen any. demote is whether the contribution is demoted now.
func (p *Plan) Keeps(cluster string, demote bool, states []export.Slice) bool {
	part, known := p.parts[cluster]
	if !known || part.demote != demote || cluster == p.observed.Cluster && p.hints.DependOnOwn() {
		return false
	}
	first := &states[0]
	if cluster == p.observed.Cluster && p.observed.ServiceExport.GetAnnotations()[export.AnnotationSaturatedBelow] != "" {
		return false // whether the cluster is saturated depends on all endpoints
	}
	return !slices.ContainsFunc(states[1:], func(state export.Slice) bool {
		return state.Name != first.Name || state.AddressType != first.AddressType ||
			!slices.Equal(state.Targets, first.Targets) ||
			p.covered != nil && anyReady(&state) != anyReady(first) ||
			p.cuts != nil && !maps.Equal(readyAddresses(&state), readyAddresses(first))
	})
}

// Slice returns the desired object of one slice of a view of the cluster, which the plan has: a new object as those of
// a Result.
func (p *Plan) Slice(cluster string, slice *export.Slice) *discoveryv1.EndpointSlice {
	view := p.View(cluster)
	return p.slice(view, export.NewEncoder(view), slice)
}

// slice returns the object of a slice. It has the ports of the import that its endpoints serve. A slice that serves none is
// kept without ports: kube-proxy sends it no traffic, a headless name still has its addresses but no SRV records, and its
// snapshot remains readable. Endpoints outside of the border serve nobody, and stay known for when it is lifted.
func (p *Plan) slice(view *export.View, encoder *export.Encoder, slice *export.Slice) *discoveryv1.EndpointSlice {
	endpoints := slice.Endpoints
	var indices []int
	left := p.cuts.surplus(view.Cluster, slice)
	switch part := p.parts[view.Cluster]; {
	case part.outside:
		endpoints, indices = hide(endpoints)
	case p.covered.all(part.level, p.agreed, slice):
		endpoints, indices = demote(endpoints, nil)
	case left != nil && p.covered.all(part.level|surplus, p.agreed, slice):
		endpoints, indices = demote(endpoints, left)
	}
	object := endpointSlice(p.observed, view, slice)
	labelBehind(p.observed, p.agreed, object.Labels)
	object.Annotations = encoder.Annotations(slice, indices)
	if text := p.srv(view.Cluster, slice, indices); text != "" {
		object.Annotations[export.AnnotationSRV] = text
	}
	object.Endpoints = p.hints.Of(view.Cluster == p.observed.Cluster, slice, endpoints)
	object.Ports = slicePorts(p.agreed, slice)
	return object
}

// readyAddresses are those that weights count.
func readyAddresses(slice *export.Slice) map[string]bool {
	all := make(map[string]bool, len(slice.Endpoints))
	for _, endpoint := range slice.Endpoints {
		if isReady(endpoint) {
			all[endpoint.Addresses[0]] = true
		}
	}
	return all
}

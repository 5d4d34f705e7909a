// SPDX-License-Identifier: Apache-2.0

package merge

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
)

// A Plan is what a merge decided for all slices of a service.
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

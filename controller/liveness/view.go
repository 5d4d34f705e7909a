// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Evidence is what is known of the export of one service by one member.
type Evidence struct {
	Source  export.Source
	Service types.NamespacedName
	// Published are the slices as last read from the member. They are Complete if the member was listed and no limit
	// withholds a slice of the service.
	Published []*discoveryv1.EndpointSlice
	Complete  bool
	// Copies are the copies of its slices in the local cluster.
	Copies []*discoveryv1.EndpointSlice
}

// View returns the view of the service that counts, its problems, and the copies that it was made from. The copies
// count instead of the published slices while the member is quarantined and while its slices are not Complete. A
// published slice that cannot be read keeps the state of its copy.
func (v Verdict) View(e Evidence) (view *export.View, problems []export.Problem, used []*discoveryv1.EndpointSlice) {
	copies := e.Source
	copies.Copies = true
	switch {
	case v.State == Gone:
		return nil, nil, nil
	case v.Keep || !e.Complete:
		view, problems = export.FromSlices(copies, e.Service, e.Copies, nil)
		if view == nil {
			return nil, problems, nil
		}
		return view, problems, e.Copies
	}
	view, problems = export.FromSlices(e.Source, e.Service, e.Published, nil)
	if len(problems) == 0 {
		return view, nil, nil
	}
	names := map[string]bool{}
	for _, slice := range e.Published {
		// A slice may be refused because of its address type, which its copy was named after.
		for _, addressType := range []discoveryv1.AddressType{
			discoveryv1.AddressTypeIPv4,
			discoveryv1.AddressTypeIPv6,
		} {
			names[export.SliceName(e.Source.Cluster, e.Service, slice.Name, addressType)] = true
		}
	}
	used = slices.DeleteFunc(slices.Clone(e.Copies), func(slice *discoveryv1.EndpointSlice) bool {
		return !names[slice.Name]
	})
	previous, _ := export.FromSlices(copies, e.Service, used, nil)
	view, problems = export.FromSlices(e.Source, e.Service, e.Published, previous)
	return view, problems, used
}

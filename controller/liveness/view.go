// SPDX-License-Identifier: Apache-2.0

package liveness

import (
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
// count instead of the published slices while the member is quarantined, while its slices are not Complete, and while
// one of them is refused as a whole.
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
	if len(problems) == 0 || len(e.Copies) == 0 {
		return view, problems, nil
	}
	known, _ := export.FromSlices(copies, e.Service, e.Copies, nil)
	view, problems = export.FromSlices(e.Source, e.Service, e.Published, known)
	if view != known {
		return view, problems, nil
	}
	return view, problems, e.Copies
}

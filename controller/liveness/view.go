// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// View returns the view of a service that counts for a member, its problems, and the copies that it was made from.
// published are the slices as last read from the member, and copies those in the local cluster, which count instead while
// the verdict is to Keep them. A published slice that cannot be read keeps the state of its copy.
func (v Verdict) View(from export.Source, service types.NamespacedName, published, copies []*discoveryv1.EndpointSlice,
) (view *export.View, problems []export.Problem, used []*discoveryv1.EndpointSlice) {
	switch {
	case v.State == Gone:
		return nil, nil, nil
	case v.Keep:
		from.Copies = true
		if view, problems, _ = export.FromSlices(from, service, copies, nil); view != nil {
			used = copies
		}
		return view, problems, used
	}
	return export.FromSlices(from, service, published, copies)
}

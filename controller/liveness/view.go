// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// View returns the view of a service that counts for a member, its problems, and the copies that it was made from.
// published are the slices as last read from the member, and copies those in the local cluster, which count instead while
// the verdict is to Keep them. A published slice that cannot be read keeps the state of its copy.
func (v Verdict) View(from export.Source, service types.NamespacedName, published, copies []*discoveryv1.EndpointSlice,
) (view *export.View, problems []export.Problem, used []*discoveryv1.EndpointSlice) {
	local := from
	local.Copies = true
	switch {
	case v.State == Gone:
		return nil, nil, nil
	case v.Keep:
		view, problems = export.FromSlices(local, service, copies, nil)
		if view == nil {
			return nil, problems, nil
		}
		return view, problems, copies
	}
	view, problems = export.FromSlices(from, service, published, nil)
	if len(problems) == 0 {
		return view, nil, nil
	}
	names := map[string]bool{}
	for _, slice := range published {
		// A slice may be refused because of its address type, which its copy was named after.
		for _, addressType := range []discoveryv1.AddressType{
			discoveryv1.AddressTypeIPv4,
			discoveryv1.AddressTypeIPv6,
		} {
			names[export.SliceName(from.Cluster, service, slice.Name, addressType)] = true
		}
	}
	used = slices.DeleteFunc(slices.Clone(copies), func(slice *discoveryv1.EndpointSlice) bool {
		return !names[slice.Name]
	})
	previous, _ := export.FromSlices(local, service, used, nil)
	view, problems = export.FromSlices(from, service, published, previous)
	return view, problems, used
}

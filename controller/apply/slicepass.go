// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/mcsapi"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// ApplySlices writes slices of a service, all other objects of which are as the last ApplyService left them. cached are
// the existing ones in the same order, nil for none, and shown is the resourceVersion up to which the cache is
// complete. It returns false if that does not suffice; then the whole service must be applied.
func (a *Applier) ApplySlices(ctx context.Context, access *mcsapi.Access, observed merge.Observed,
	cached, desired []*discoveryv1.EndpointSlice, shown string,
) bool {
	p := &pass{Applier: a, access: access, observed: observed}
	p.existing.Observed, p.result.EndpointSlices = observed, desired
	known := a.mutations.of(observed.Service)
	if known != nil && a.Clock.Since(known.updated) > maxMutationAge {
		return false
	}
	for i, slice := range cached {
		if known != nil {
			if slice != nil && known.deleted[slice.UID] {
				return false
			}
			slice = known.newestSlice(desired[i].Name, slice, shown)
		}
		if slice == nil {
			return false
		}
		p.existing.EndpointSlices = append(p.existing.EndpointSlices, slice)
	}
	late := p.writeSlices(ctx)
	return len(late) == 0 && len(p.foreignObjects) == 0 && p.outcome == Outcome{}
}

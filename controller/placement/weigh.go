// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// A family is an address family of a cluster's contribution.
type family struct {
	cluster     string
	addressType discoveryv1.AddressType
}

// A weighing is the outcome of weights in one address family: of the clusters of the best level that has ready
// endpoints, how many are ready and how many are used.
type weighing struct {
	addressType discoveryv1.AddressType
	ready, used map[string]int
}

// weigh decides which endpoints of an address family the weights of the import leave out.
func (p *placement) weigh(addressType discoveryv1.AddressType, contributions []merge.Contribution) {
	positions := map[string][]position{}       // of the ready endpoints
	levels := map[merge.Level]map[string]int{} // how many they are, by cluster
	for _, contribution := range contributions {
		cluster := contribution.View.Cluster
		place := p.places[cluster]
		if place.outside || p.hinted && cluster == p.Cluster.ID {
			continue
		}
		ready := p.positionsOf(contribution.View, addressType)
		if len(ready) == 0 {
			continue
		}
		if levels[place.use] == nil {
			levels[place.use] = map[string]int{}
		}
		positions[cluster], levels[place.use][cluster] = ready, len(ready)
	}
	if len(levels) == 0 {
		return
	}
	ready := levels[slices.Min(slices.Collect(maps.Keys(levels)))]
	used := p.weights.Used(ready)
	for cluster, n := range used {
		switch {
		case n == 0:
			p.last[family{cluster, addressType}] = nil
		case n < ready[cluster]:
			p.last[family{cluster, addressType}] = &positions[cluster][n-1]
		}
	}
	p.weighings = append(p.weighings, weighing{addressType, ready, used})
	for _, ready := range levels {
		for cluster, weight := range p.weights.each(ready) {
			p.each[family{cluster, addressType}] = weight
		}
	}
}

// positionsOf returns the positions of the ready endpoints of a view in a family, in their order and each once.
func (p *placement) positionsOf(view *export.View, addressType discoveryv1.AddressType) (ready []position) {
	for i := range view.Slices {
		slice := &view.Slices[i]
		if slice.AddressType != addressType {
			continue
		}
		for j := range slice.Endpoints {
			if endpoint := &slice.Endpoints[j]; isReady(endpoint) {
				ready = append(ready, positionOf(p.imported, endpoint))
			}
		}
	}
	slices.SortFunc(ready, position.compare)
	return slices.Compact(ready)
}

// leavesOut reports whether weights leave an endpoint of a cluster out.
func (p *placement) leavesOut(cluster string, addressType discoveryv1.AddressType, endpoint *discoveryv1.Endpoint) bool {
	last, found := p.last[family{cluster, addressType}]
	return found && (last == nil || positionOf(p.imported, endpoint).compare(*last) > 0)
}

// leavesSome reports whether weights leave endpoints of a cluster out.
func (p *placement) leavesSome(cluster string) bool {
	return slices.ContainsFunc(p.weighings, func(w weighing) bool { return w.used[cluster] < w.ready[cluster] })
}

func isReady(endpoint *discoveryv1.Endpoint) bool { return ptr.Deref(endpoint.Conditions.Ready, true) }

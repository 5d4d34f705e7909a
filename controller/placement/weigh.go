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

// cuts are which endpoints weights leave out.
type cuts struct {
	service string
	// last are the last endpoints in their order that are used, nil for none. Families of which all are used have no
	// entry.
	last map[family]*position
	// each are the weights of SRV records of single endpoints, 0 for clusters that are left out.
	each map[family]int
	// weighings are IPv4 and IPv6, as far as endpoints are ready.
	weighings []weighing
}

// weigh makes the cuts for the contributions if the import has weights.
func (p *placement) weigh(contributions []merge.Contribution) {
	if p.weights == nil {
		return
	}
	p.cuts = &cuts{
		service: p.imported.Namespace + "/" + p.imported.Name, last: map[family]*position{}, each: map[family]int{},
	}
	for _, addressType := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		p.weighFamily(addressType, contributions)
	}
}

func (p *placement) weighFamily(addressType discoveryv1.AddressType, contributions []merge.Contribution) {
	positions := map[string][]position{}       // of the ready endpoints
	levels := map[merge.Level]map[string]int{} // how many they are, by cluster
	for _, contribution := range contributions {
		cluster := contribution.View.Cluster
		place := p.places[cluster]
		if place.outside || p.hinted && cluster == p.Cluster.ID {
			continue
		}
		ready := p.cuts.positionsOf(contribution.View, addressType)
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
			p.cuts.last[family{cluster, addressType}] = nil
		case n < ready[cluster]:
			p.cuts.last[family{cluster, addressType}] = &positions[cluster][n-1]
		}
	}
	p.cuts.weighings = append(p.cuts.weighings, weighing{addressType, ready, used})
	for _, ready := range levels {
		for cluster, weight := range p.weights.each(ready) {
			p.cuts.each[family{cluster, addressType}] = weight
		}
	}
}

// positionsOf returns the positions of the ready endpoints of a view in a family, in their order and each once.
func (c *cuts) positionsOf(view *export.View, addressType discoveryv1.AddressType) (ready []position) {
	for i := range view.Slices {
		slice := &view.Slices[i]
		if slice.AddressType != addressType {
			continue
		}
		for j := range slice.Endpoints {
			if endpoint := &slice.Endpoints[j]; isReady(endpoint) {
				ready = append(ready, positionOf(c.service, endpoint.Addresses[0]))
			}
		}
	}
	slices.SortFunc(ready, position.compare)
	return slices.Compact(ready)
}

// leavesOut reports whether weights leave an endpoint of a cluster out. c may be nil.
func (c *cuts) leavesOut(cluster string, addressType discoveryv1.AddressType, endpoint *discoveryv1.Endpoint) bool {
	if c == nil {
		return false
	}
	last, found := c.last[family{cluster, addressType}]
	return found && (last == nil || positionOf(c.service, endpoint.Addresses[0]).compare(*last) > 0)
}

// leavesSome reports whether weights leave endpoints of a cluster out.
func (c *cuts) leavesSome(cluster string) bool {
	return c != nil && slices.ContainsFunc(c.weighings, func(w weighing) bool { return w.used[cluster] < w.ready[cluster] })
}

func isReady(endpoint *discoveryv1.Endpoint) bool { return ptr.Deref(endpoint.Conditions.Ready, true) }

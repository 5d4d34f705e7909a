// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/traffic"
)

// A cut is which endpoints of a cluster are used in one address family, by weights: those up to a place, or none.
type cut struct {
	none bool
	last traffic.Place
}

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

// cuts are those of all contributions that have surplus endpoints.
type cuts struct {
	service types.NamespacedName
	of      map[family]cut
	// each are the weights of SRV records of single endpoints of a headless import, 0 for clusters that are left out.
	each map[family]int
	// hinted is the cluster that hints put before the others, and that takes no part; empty for none.
	hinted string
	// weighings are IPv4 and IPv6 if there are weights, as far as endpoints are ready.
	weighings []weighing
}

// weigh returns the cuts for the contributions, nil without weights.
func weigh(observed Observed, contributions []Contribution, order order, parts map[string]part) *cuts {
	if order.weights == nil {
		return nil
	}
	c := &cuts{service: observed.Service, of: map[family]cut{}, each: map[family]int{}}
	if order.hinted {
		c.hinted = observed.Cluster
	}
	for _, addressType := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		c.weigh(addressType, contributions, order, parts)
	}
	return c
}

func (c *cuts) weigh(addressType discoveryv1.AddressType, contributions []Contribution, order order,
	parts map[string]part,
) {
	addresses := map[string][]string{}   // the ready ones
	levels := map[level]map[string]int{} // how many they are, by cluster
	for _, contribution := range contributions {
		cluster := contribution.View.Cluster
		part := parts[cluster]
		if part.outside || cluster == c.hinted {
			continue
		}
		ready := readyOf(contribution.View, addressType)
		if len(ready) == 0 {
			continue
		}
		if levels[part.level] == nil {
			levels[part.level] = map[string]int{}
		}
		addresses[cluster], levels[part.level][cluster] = ready, len(ready)
	}
	if len(levels) == 0 {
		return
	}
	ready := levels[slices.Min(slices.Collect(maps.Keys(levels)))]
	used := order.weights.Used(ready)
	for cluster, n := range used {
		switch {
		case n == 0:
			c.of[family{cluster, addressType}] = cut{none: true}
		case n < ready[cluster]:
			places := make([]traffic.Place, 0, ready[cluster])
			for _, address := range addresses[cluster] {
				places = append(places, c.place(address))
			}
			c.of[family{cluster, addressType}] = cut{last: traffic.Last(places, n)}
		}
	}
	c.weighings = append(c.weighings, weighing{addressType, ready, used})
	if !order.headless {
		return
	}
	for _, ready := range levels {
		for cluster, weight := range order.weights.Each(ready) {
			c.each[family{cluster, addressType}] = weight
		}
	}
}

// readyOf returns the addresses of the ready endpoints of a view in a family, each once.
func readyOf(view *export.View, addressType discoveryv1.AddressType) []string {
	var ready []string
	seen := map[string]bool{}
	for i := range view.Slices {
		slice := &view.Slices[i]
		if slice.AddressType != addressType {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if address := endpoint.Addresses[0]; isReady(endpoint) && !seen[address] {
				seen[address] = true
				ready = append(ready, address)
			}
		}
	}
	return ready
}

func (c *cuts) place(address string) traffic.Place {
	return traffic.PlaceOf(c.service.String(), address)
}

// surplus returns which endpoints of a slice are left out, nil if none of its cluster is.
func (c *cuts) surplus(cluster string, slice *export.Slice) func(discoveryv1.Endpoint) bool {
	if c == nil {
		return nil
	}
	cut, found := c.of[family{cluster, slice.AddressType}]
	if !found {
		return nil
	}
	return func(endpoint discoveryv1.Endpoint) bool {
		return cut.none || c.place(endpoint.Addresses[0]).Compare(cut.last) > 0
	}
}

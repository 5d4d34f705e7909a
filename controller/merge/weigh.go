// SPDX-License-Identifier: Apache-2.0

package merge

import (
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
	// weighings are IPv4 and IPv6 if there are weights, as far as endpoints are ready.
	weighings []weighing
}

// weigh returns the cuts for the contributions, nil without weights.
func weigh(observed Observed, contributions []Contribution, order order, parts map[string]part) *cuts {
	if order.weights == nil {
		return nil
	}
	c := &cuts{service: observed.Service, of: map[family]cut{}}
	for _, addressType := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		c.weigh(addressType, observed, contributions, order, parts)
	}
	return c
}

func (c *cuts) weigh(addressType discoveryv1.AddressType, observed Observed, contributions []Contribution, order order,
	parts map[string]part,
) {
	places := map[string][]traffic.Place{}
	best := level(-1)
	for _, contribution := range contributions {
		cluster := contribution.View.Cluster
		part := parts[cluster]
		if part.outside || order.hinted && cluster == observed.Cluster {
			continue // hints put this cluster before the others
		}
		ready := c.places(contribution.View, addressType)
		if len(ready) == 0 || best >= 0 && part.level > best {
			continue
		}
		if part.level != best {
			best = part.level
			clear(places)
		}
		places[cluster] = ready
	}
	if best < 0 {
		return
	}
	ready := make(map[string]int, len(places))
	for cluster, of := range places {
		ready[cluster] = len(of)
	}
	used := order.weights.Used(ready)
	for cluster, n := range used {
		switch {
		case n == 0:
			c.of[family{cluster, addressType}] = cut{none: true}
		case n < ready[cluster]:
			c.of[family{cluster, addressType}] = cut{last: traffic.Last(places[cluster], n)}
		}
	}
	c.weighings = append(c.weighings, weighing{addressType, ready, used})
}

// places returns the places of the ready endpoints of a view in a family, each address once.
func (c *cuts) places(view *export.View, addressType discoveryv1.AddressType) []traffic.Place {
	var places []traffic.Place
	seen := map[string]bool{}
	for i := range view.Slices {
		slice := &view.Slices[i]
		if slice.AddressType != addressType {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			if address := endpoint.Addresses[0]; isReady(endpoint) && !seen[address] {
				seen[address] = true
				places = append(places, c.place(address))
			}
		}
	}
	return places
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

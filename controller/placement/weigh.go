// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"crypto/sha256"
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// A weighing is the outcome of weights in one address family.
type weighing struct {
	// ready and used count the endpoints by cluster, at the best level that has ready endpoints.
	ready, used map[string]int
	// each has the weight of the SRV record of one endpoint by cluster, 0 for clusters that are left out.
	each map[string]int
}

// weigh decides which endpoints of an address family the weights of the import leave out.
func (p *placement) weigh(addressType discoveryv1.AddressType, contributions []merge.Contribution) {
	w, inOrder := weighing{each: map[string]int{}}, map[string][]string{}
	levels := map[merge.Level]map[string]int{} // how many endpoints are ready, by cluster
	for _, contribution := range contributions {
		cluster := contribution.View.Cluster
		place := p.places[cluster]
		if place.outside || p.hinted && cluster == p.Cluster.ID {
			continue
		}
		ready := p.inOrder(contribution.View, addressType)
		if len(ready) == 0 {
			continue
		}
		if levels[place.use] == nil {
			levels[place.use] = map[string]int{}
		}
		inOrder[cluster], levels[place.use][cluster] = ready, len(ready)
	}
	if len(levels) == 0 {
		return
	}
	w.ready = levels[slices.Min(slices.Collect(maps.Keys(levels)))]
	w.used = p.weights.Used(w.ready)
	for cluster := range w.ready {
		for _, address := range inOrder[cluster][w.used[cluster]:] {
			p.places[cluster].surplus[address] = true
		}
	}
	for _, ready := range levels {
		maps.Copy(w.each, p.weights.each(ready))
	}
	p.weighings[addressType] = w
}

// inOrder returns the addresses of the ready endpoints of a view in a family, each once, in the order in which they are used. It
// is the same in all clusters, and differs between imports.
func (p *placement) inOrder(view *export.View, addressType discoveryv1.AddressType) (ready []string) {
	byHash := map[string]string{}
	for i := range view.Slices {
		slice := &view.Slices[i]
		if slice.AddressType != addressType {
			continue
		}
		for j := range slice.Endpoints {
			if endpoint := &slice.Endpoints[j]; export.IsReady(endpoint) {
				hash := sha256.Sum256([]byte(p.imported.Namespace + "/" + p.imported.Name + " " + endpoint.Addresses[0]))
				byHash[string(hash[:])] = endpoint.Addresses[0]
			}
		}
	}
	for _, hash := range slices.Sorted(maps.Keys(byHash)) {
		ready = append(ready, byHash[hash])
	}
	return ready
}

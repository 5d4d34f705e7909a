// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A served is a port of the import in one address family; without a protocol
// and number it stands for the addresses of the name.
type served struct {
	addressType discoveryv1.AddressType
	protocol    corev1.Protocol
	number      int32
}

// covers has the lowest level of which some cluster has a ready endpoint.
type covers map[served]level

// coverage is nil if all endpoints have the first level.
func coverage(contributions []Contribution, parts map[string]part, cuts *cuts) covers {
	if cuts == nil &&
		!slices.ContainsFunc(contributions, func(c Contribution) bool { return parts[c.View.Cluster].level > 0 }) {
		return nil
	}
	covered := make(covers)
	for _, contribution := range contributions {
		part := parts[contribution.View.Cluster]
		if part.outside {
			continue
		}
		for i := range contribution.View.Slices {
			slice := &contribution.View.Slices[i]
			if !anyReady(slice) {
				continue
			}
			counts := part.counts
			if left := cuts.surplus(contribution.View.Cluster, slice); left != nil &&
				!slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return isReady(e) && !left(e) }) {
				counts |= surplus
			}
			covered.add(served{addressType: slice.AddressType}, counts)
			for _, target := range slice.Targets {
				covered.add(served{slice.AddressType, target.Protocol, target.Number}, counts)
			}
		}
	}
	return covered
}

func (c covers) add(what served, by level) {
	if lowest, covered := c[what]; !covered || by < lowest {
		c[what] = by
	}
}

// before reports whether a ready endpoint of a lower level covers this.
func (c covers) before(of level, what served) bool {
	lowest, covered := c[what]
	return covered && lowest < of
}

// all reports whether a slice of the level can be demoted: there is a ready endpoint of a lower level for everything
// that its endpoints serve. kube-proxy knows the conditions of an endpoint for all its ports, and each family apart.
func (c covers) all(of level, agreed decision, slice *export.Slice) bool {
	if of == 0 || agreed.spec.Type == v1beta1.Headless && !c.before(of, served{addressType: slice.AddressType}) {
		return false
	}
	return !slices.ContainsFunc(slice.Targets, func(target export.Target) bool {
		_, imported := agreed.index[portKey{target.Protocol, target.Number}]
		return imported && !c.before(of, served{slice.AddressType, target.Protocol, target.Number})
	})
}

// demote returns the endpoints with every ready one serving and terminating instead, and the indices of these. If only
// is not nil it tells which. kube-proxy uses such endpoints only if none is ready. The input stays unchanged.
func demote(endpoints []discoveryv1.Endpoint, only func(discoveryv1.Endpoint) bool) ([]discoveryv1.Endpoint, []int) {
	var demoted []int
	for i := range endpoints {
		if !isReady(endpoints[i]) || only != nil && !only(endpoints[i]) {
			continue
		}
		if demoted == nil {
			endpoints = slices.Clone(endpoints)
		}
		endpoints[i].Conditions = export.Conditions(false, true, true)
		demoted = append(demoted, i)
	}
	return endpoints, demoted
}

// hide returns copies of the endpoints that are neither ready nor serving, and the indices of the endpoints that were ready.
// Neither kube-proxy nor DNS uses such endpoints. The result does not tell which of the other endpoints were serving and
// terminating. The input stays unchanged.
func hide(endpoints []discoveryv1.Endpoint) (hidden []discoveryv1.Endpoint, ready []int) {
	hidden = slices.Clone(endpoints)
	for i := range hidden {
		if isReady(hidden[i]) {
			ready = append(ready, i)
		}
		hidden[i].Conditions = export.Conditions(false, false, false)
	}
	return hidden, ready
}

func anyReady(slice *export.Slice) bool { return slices.ContainsFunc(slice.Endpoints, isReady) }

func isReady(endpoint discoveryv1.Endpoint) bool {
	return endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
}

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

// covers tells what some cluster that is not demoted has a ready endpoint for.
type covers map[served]bool

// coverage is nil where no contribution is to be demoted.
func coverage(contributions []Contribution) covers {
	if !slices.ContainsFunc(contributions, func(c Contribution) bool { return c.Demote }) {
		return nil
	}
	covered := make(covers)
	for _, contribution := range contributions {
		if contribution.Demote {
			continue
		}
		for i := range contribution.View.Slices {
			slice := &contribution.View.Slices[i]
			if !anyReady(slice) {
				continue
			}
			covered[served{addressType: slice.AddressType}] = true
			for _, target := range slice.Targets {
				covered[served{slice.AddressType, target.Protocol, target.Number}] = true
			}
		}
	}
	return covered
}

// all reports whether the slice can be demoted: there is a ready endpoint elsewhere for everything that its endpoints
// serve. kube-proxy knows the conditions of an endpoint for all its ports, and each family apart.
func (c covers) all(agreed decision, slice *export.Slice) bool {
	if agreed.spec.Type == v1beta1.Headless && !c[served{addressType: slice.AddressType}] {
		return false
	}
	return !slices.ContainsFunc(slice.Targets, func(target export.Target) bool {
		_, imported := agreed.index[portKey{target.Protocol, target.Number}]
		return imported && !c[served{slice.AddressType, target.Protocol, target.Number}]
	})
}

// demote returns the endpoints with every ready one serving and terminating instead, and the indices of these.
// kube-proxy uses such endpoints only if none is ready. The input stays unchanged.
func demote(endpoints []discoveryv1.Endpoint) ([]discoveryv1.Endpoint, []int) {
	var demoted []int
	for i := range endpoints {
		if !isReady(endpoints[i]) {
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

func anyReady(slice *export.Slice) bool { return slices.ContainsFunc(slice.Endpoints, isReady) }

func isReady(endpoint discoveryv1.Endpoint) bool {
	return endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
}

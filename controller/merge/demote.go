// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// A served is a port of the import in one address family; without a protocol and number, it means the addresses of the
// name.
type served struct {
	addressType discoveryv1.AddressType
	protocol    corev1.Protocol
	number      int32
}

// covers has the lowest level with a ready endpoint of any cluster for everything that slices serve, Unused for none.
type covers map[served]Level

func coverage(contributions []Contribution, placement Placement) covers {
	covered := make(covers)
	for _, contribution := range contributions {
		for i := range contribution.View.Slices {
			slice := &contribution.View.Slices[i]
			lowest := Unused
			for j := range slice.Endpoints {
				if endpoint := &slice.Endpoints[j]; export.IsReady(endpoint) {
					_, cover := placement.Level(contribution, endpoint)
					lowest = min(lowest, cover)
				}
			}
			covered.add(served{addressType: slice.AddressType}, lowest)
			for _, target := range slice.Targets {
				covered.add(served{slice.AddressType, target.Protocol, target.Number}, lowest)
			}
		}
	}
	return covered
}

func (c covers) add(what served, by Level) {
	if lowest, covered := c[what]; !covered || by < lowest {
		c[what] = by
	}
}

// all reports whether endpoints of the level in a slice can be demoted: there is a ready endpoint of a lower level for
// everything that they serve. kube-proxy knows the conditions of an endpoint for all its ports, and each family apart.
func (c covers) all(of Level, agreed Decision, slice *export.Slice) bool {
	if of == 0 || agreed.spec.Type == v1beta1.Headless && c[served{addressType: slice.AddressType}] >= of {
		return false
	}
	return !slices.ContainsFunc(slice.Targets, func(target export.Target) bool {
		return agreed.keys[portKey{target.Protocol, target.Number}] && c[served{slice.AddressType, target.Protocol, target.Number}] >= of
	})
}

// place returns the endpoints of a slice with their conditions, and the indices of ready endpoints that are demoted.
// These become serving and terminating, so that kube-proxy uses them only if no endpoint is ready. Unused endpoints
// become neither ready nor serving, so that neither kube-proxy nor DNS uses them. The view stays unchanged.
func (c covers) place(agreed Decision, from Contribution, slice *export.Slice) (endpoints []discoveryv1.Endpoint, demoted []int) {
	endpoints = slice.Endpoints
	last, covered, changed := Level(0), false, false // level 0 is never covered
	for i := range slice.Endpoints {
		endpoint := &slice.Endpoints[i]
		level, _ := agreed.Placement.Level(from, endpoint)
		if level != last {
			last, covered = level, level != Unused && c.all(level, agreed, slice)
		}
		ready := export.IsReady(endpoint)
		if level != Unused && (!ready || !covered) {
			continue
		}
		if !changed {
			endpoints, changed = slices.Clone(endpoints), true
		}
		endpoints[i].Conditions = export.Conditions(false, level != Unused, level != Unused)
		if ready {
			demoted = append(demoted, i)
		}
	}
	return endpoints, demoted
}

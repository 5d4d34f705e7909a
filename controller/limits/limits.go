// SPDX-License-Identifier: Apache-2.0

// Package limits bounds the contributions of members, so that no member uses up what the others need: for each member the
// services, endpoints and size of a slice, and for all together the memory of slices and the cluster IPs of imports.
// Everything is counted on admission. Imported services keep their place. New ones are admitted first come, first served,
// but half of each shared amount is reserved for the members in equal parts.
package limits

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// Limits bound the exports of one member. All are positive.
type Limits struct {
	// Services is the maximum number of services.
	Services int
	// Endpoints is the maximum number of their endpoints, as Weight counts them: a dual-stack pod has two.
	Endpoints int
	// SliceBytes is the maximum size of one EndpointSlice in protobuf.
	SliceBytes int
}

// Default are Kubernetes' own limits of a cluster: 10,000 Services and 150,000 pods of two families. A slice of 1000
// endpoints, the maximum of the API, has about 200 KiB with its snapshot.
var Default = Limits{Services: 10_000, Endpoints: 300_000, SliceBytes: 512 << 10}

// A Limit is the name of a limit. The set is fixed, so that it can label a metric.
type Limit string

// The limits.
const (
	Services   Limit = "services"
	Endpoints  Limit = "endpoints"
	SliceBytes Limit = "slice-bytes"
	// Memory is shared by all members.
	Memory Limit = "memory"
)

// All lists the limits in the order of reports.
var All = []Limit{Services, Endpoints, SliceBytes, Memory}

// Excess maps each limit that a member exceeds to the name of a service that is left out because of it.
type Excess map[Limit]string

// Exceeded returns an error that says which limits the member exceeds and what to do, nil if none.
func (s *Store) Exceeded() error {
	var errs []error
	e := s.Excess()
	texts := map[Limit]string{
		Services: fmt.Sprintf("more than %d services (--member-services): service %s is not imported, possibly others",
			s.limits.Services, e[Services]),
		Endpoints: fmt.Sprintf("more than %d endpoints (--member-endpoints): those of service %s are not imported, possibly others",
			s.limits.Endpoints, e[Endpoints]),
		SliceBytes: fmt.Sprintf("an EndpointSlice of more than %d bytes: service %s stays as last known. Export fewer labels and annotations with it, or put fewer endpoints into the slice",
			s.limits.SliceBytes, e[SliceBytes]),
		Memory: fmt.Sprintf("more slices than its share of the memory: changes of service %s are not imported, possibly of others. Raise the memory limit of the controller",
			e[Memory]),
	}
	for _, limit := range slices.Sorted(maps.Keys(e)) {
		errs = append(errs, fmt.Errorf("cluster %s has %s", s.cluster, texts[limit]))
	}
	return errors.Join(errs...)
}

// A Weight is the amount that slices count toward the limits, zero for no slices.
type Weight struct {
	// Endpoints is the number of endpoints. An empty slice counts as one.
	Endpoints int
	// Bytes estimates the memory of the slices as export.Packed. It is too high for slices that compress well, and never
	// much too low.
	Bytes int
}

// Plus returns the sum of two weights.
func (w Weight) Plus(other Weight) Weight {
	return Weight{Endpoints: w.Endpoints + other.Endpoints, Bytes: w.Bytes + other.Bytes}
}

// sizeOfSlice is the memory that a stored slice takes in addition to its encoded form, in bytes: its entries in the Store
// and in indexes. TestMemoryAtTheLimits of the package member compares it with measurements.
const sizeOfSlice = 512

// WeightOf returns the weight of one slice.
func WeightOf(slice *discoveryv1.EndpointSlice) Weight {
	return Weight{Endpoints: max(1, len(slice.Endpoints)), Bytes: sizeOfSlice + slice.Size()}
}

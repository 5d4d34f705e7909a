// SPDX-License-Identifier: Apache-2.0

package export

import discoveryv1 "k8s.io/api/discovery/v1"

// A Weight is what slices count toward the limits.
type Weight struct {
	// IPv4 and IPv6 are the numbers of endpoints of each family. An empty slice counts as one.
	IPv4, IPv6 int
	// Bytes estimates the memory of the slices as package packed holds them. It is more for what compresses well, and
	// never much less.
	Bytes int
}

// Endpoints returns the number of endpoints. A dual-stack pod, which has one in a slice of each family, counts once.
func (w Weight) Endpoints() int { return max(w.IPv4, w.IPv6) }

// Plus returns the sum of two weights.
func (w Weight) Plus(other Weight) Weight {
	return Weight{IPv4: w.IPv4 + other.IPv4, IPv6: w.IPv6 + other.IPv6, Bytes: w.Bytes + other.Bytes}
}

// Minus returns the difference of two weights.
func (w Weight) Minus(other Weight) Weight {
	return Weight{IPv4: w.IPv4 - other.IPv4, IPv6: w.IPv6 - other.IPv6, Bytes: w.Bytes - other.Bytes}
}

// sizeOfSlice is what a slice takes besides its encoded form: its places in a store and its indexes.
// TestMemoryAtTheLimits of the package member holds it against what is measured.
const sizeOfSlice = 512

// WeightOf returns the weight of one slice.
func WeightOf(slice *discoveryv1.EndpointSlice) Weight {
	endpoints := max(1, len(slice.Endpoints))
	weight := Weight{Bytes: sizeOfSlice + slice.Size()}
	if slice.AddressType == discoveryv1.AddressTypeIPv6 {
		weight.IPv6 = endpoints
	} else {
		weight.IPv4 = endpoints
	}
	return weight
}

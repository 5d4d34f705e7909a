// SPDX-License-Identifier: Apache-2.0

package export

import (
	"unsafe"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// A Weight is what slices count toward the limits.
type Weight struct {
	// IPv4 and IPv6 are the numbers of endpoints of each family. An empty slice counts as one.
	IPv4, IPv6 int
	// Bytes estimates the memory of the decoded slices, and is never much less than it.
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

// What values take on the heap of a 64-bit machine. TestMemoryAtTheLimits of the
// package member holds them against what is measured.
const (
	sizeOfSlice    = 1536 // with its places in a store and its indexes
	sizeOfPointer  = 16   // what is behind one, a string apart
	sizeOfString   = 16   // its allocation is rounded up
	sizeOfPair     = 96   // of a map, without the strings' bytes
	sizeOfEndpoint = int(unsafe.Sizeof(discoveryv1.Endpoint{})) + 16
	sizeOfPort     = int(unsafe.Sizeof(discoveryv1.EndpointPort{})) + 4*sizeOfPointer
)

// WeightOf returns the weight of one slice.
func WeightOf(slice *discoveryv1.EndpointSlice) Weight {
	endpoints := max(1, len(slice.Endpoints))
	weight := Weight{Bytes: sizeOfSlice + len(slice.Namespace) + len(slice.Name) + len(slice.UID) +
		len(slice.ResourceVersion)}
	if slice.AddressType == discoveryv1.AddressTypeIPv6 {
		weight.IPv6 = endpoints
	} else {
		weight.IPv4 = endpoints
	}
	for _, pairs := range []map[string]string{slice.Labels, slice.Annotations} {
		for key, value := range pairs {
			weight.Bytes += sizeOfPair + len(key) + len(value)
		}
	}
	for i := range slice.Endpoints {
		endpoint := &slice.Endpoints[i]
		weight.Bytes += sizeOfEndpoint
		for _, address := range endpoint.Addresses {
			weight.Bytes += 2*sizeOfString + len(address)
		}
		for _, text := range []*string{endpoint.Hostname, endpoint.Zone} {
			if text != nil {
				weight.Bytes += sizeOfPointer + sizeOfString + len(*text)
			}
		}
	}
	for i := range slice.Ports {
		weight.Bytes += sizeOfPort
		for _, text := range []*string{slice.Ports[i].Name, slice.Ports[i].AppProtocol} {
			if text != nil {
				weight.Bytes += sizeOfString + len(*text)
			}
		}
	}
	return weight
}

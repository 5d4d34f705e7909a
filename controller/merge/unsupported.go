// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Unsupported is what an API server refuses or drops because it is older than
// what it is asked for. The zero value is one that knows all.
type Unsupported struct {
	// Distributions are values of a Service's trafficDistribution: the field
	// itself is of Kubernetes 1.30 (KEP-4444), PreferSameZone and PreferSameNode
	// are of 1.34 (KEP-3015).
	Distributions []string
	// NodeHints are the hints for nodes in EndpointSlices, of 1.34 (KEP-3015).
	NodeHints bool
}

// distribution is the value that comes nearest to what is asked for among those
// that are known, nil for none. PreferClose is the older name of PreferSameZone.
func (u Unsupported) distribution(value string) *string {
	if value == corev1.ServiceTrafficDistributionPreferSameZone && slices.Contains(u.Distributions, value) {
		value = corev1.ServiceTrafficDistributionPreferClose
	}
	if slices.Contains(u.Distributions, value) {
		return nil
	}
	return ptr.To(value)
}

// derivedDistribution leaves out what this program does not know, and what the
// API server does not: it refuses such values, and with them the Service.
func derivedDistribution(unsupported Unsupported, value *string) *string {
	known := []string{
		corev1.ServiceTrafficDistributionPreferClose,
		corev1.ServiceTrafficDistributionPreferSameZone,
		corev1.ServiceTrafficDistributionPreferSameNode,
	}
	if value == nil || !slices.Contains(known, *value) {
		return nil
	}
	return unsupported.distribution(*value)
}

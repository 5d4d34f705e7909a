// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Unsupported is what an older API server refuses or drops. The zero value is an API server that knows everything.
type Unsupported struct {
	// Distributions are unknown values of a Service's trafficDistribution. The field came with Kubernetes 1.30
	// (KEP-4444), PreferSameZone and PreferSameNode with 1.34 (KEP-3015).
	Distributions []string
	// NodeHints are hints for nodes in EndpointSlices, which came with 1.34 (KEP-3015).
	NodeHints bool
}

// distribution returns the known value that is nearest to the requested one, nil for none. PreferClose is the older
// name of PreferSameZone.
func (u Unsupported) distribution(value string) *string {
	if value == corev1.ServiceTrafficDistributionPreferSameZone && slices.Contains(u.Distributions, value) {
		value = corev1.ServiceTrafficDistributionPreferClose
	}
	if slices.Contains(u.Distributions, value) {
		return nil
	}
	return ptr.To(value)
}

// derivedDistribution drops values that this program or the API server does not know, because the API server would
// refuse the Service.
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

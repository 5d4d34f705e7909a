// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Unsupported is what an older API server refuses or drops. The zero value is an API server that knows everything.
type Unsupported struct {
	// Distributions are unknown values of a Service's trafficDistribution. The field came with Kubernetes 1.30
	// (KEP-4444), PreferSameZone and PreferSameNode with 1.34 (KEP-3015).
	Distributions []string
	// NodeHints are hints for nodes in EndpointSlices, which came with 1.34 (KEP-3015).
	NodeHints bool
}

// distribution returns the value that a derived Service has for the requested one, nil for none: the API server would
// refuse a Service with a value that it does not know. PreferClose is the older name of PreferSameZone.
func (u Unsupported) distribution(value string) *string {
	if value == corev1.ServiceTrafficDistributionPreferSameZone && slices.Contains(u.Distributions, value) {
		value = corev1.ServiceTrafficDistributionPreferClose
	}
	switch value {
	case corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone,
		corev1.ServiceTrafficDistributionPreferSameNode:
		if !slices.Contains(u.Distributions, value) {
			return &value
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

// Package locality decides which endpoints of a service the nodes of this cluster use first, and expresses it in
// topology hints for kube-proxy.
//
// The package is pure. docs/design/locality.md gives the reasons for each decision.
package locality

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Values of the annotation export.AnnotationPrefer and of the flag --prefer.
const (
	// PreferCluster asks for endpoints of the local cluster first.
	PreferCluster = "cluster"
	// PreferNone asks for no cluster first.
	PreferNone = "none"
)

// A Preference states which endpoints the clients of a service use first. Nearer ones precede: those of the node, then
// of the zone, then of the cluster. The zero value treats all endpoints alike.
type Preference struct {
	// Node and Zone come from the Service's trafficDistribution. Node implies Zone.
	Node, Zone bool
	// Cluster puts endpoints of the local cluster before those of all others.
	Cluster bool
}

// PreferenceOf returns the preference of an import from its trafficDistribution and its annotation
// export.AnnotationPrefer, each empty if absent. operator is the value of --prefer, which applies to imports with
// neither. Unknown values have no effect; an unknown annotation is also an error.
func PreferenceOf(trafficDistribution, annotation, operator string) (Preference, error) {
	var preference Preference
	switch trafficDistribution {
	case corev1.ServiceTrafficDistributionPreferSameNode:
		preference.Node, preference.Zone = true, true
	case corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferClose:
		preference.Zone = true
	}
	switch annotation {
	case PreferCluster:
		preference.Cluster = true
	case PreferNone:
	case "":
		preference.Cluster = operator == PreferCluster && trafficDistribution == ""
	default:
		return preference, fmt.Errorf("%q is no preference: use %q or %q", shorten(annotation), PreferCluster,
			PreferNone)
	}
	return preference, nil
}

// shorten bounds what a message quotes of another cluster's text.
func shorten(text string) string {
	const most = 63
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// ValidatePreference returns an error if the value of --prefer is unknown. Empty means PreferNone.
func ValidatePreference(operator string) error {
	switch operator {
	case "", PreferCluster, PreferNone:
		return nil
	}
	return fmt.Errorf("%q is no preference: use %q or %q", operator, PreferCluster, PreferNone)
}

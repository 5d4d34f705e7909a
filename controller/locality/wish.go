// SPDX-License-Identifier: Apache-2.0

// Package locality decides which endpoints of a service the nodes of this
// cluster use first, and says so in hints that kube-proxy follows.
//
// The package is pure. docs/design/locality.md says why each decision is as it
// is.
package locality

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Values of the annotation export.AnnotationPrefer and of the operator's
// preference.
const (
	// PreferCluster asks for endpoints of the own cluster first.
	PreferCluster = "cluster"
	// PreferNone asks for no cluster first.
	PreferNone = "none"
)

// A Wish is which endpoints the clients of a service want to use first. The
// nearest come first: those of the node, of the zone, of the cluster. The zero
// value makes no difference between endpoints.
type Wish struct {
	// Node and Zone are of the Service's field trafficDistribution. Who wishes
	// for the node wishes for the zone, too.
	Node, Zone bool
	// Cluster puts endpoints of the own cluster before those of all others.
	Cluster bool
}

// WishOf is the wish of an import: what its trafficDistribution and its
// annotation export.AnnotationPrefer say, each empty where it has none, and,
// where it has neither, what the operator prefers for all, empty for nothing.
// A trafficDistribution that is not known says nothing. An annotation that is
// not known says nothing either, and is the error.
func WishOf(trafficDistribution, annotation, operator string) (Wish, error) {
	var wish Wish
	switch trafficDistribution {
	case corev1.ServiceTrafficDistributionPreferSameNode:
		wish.Node, wish.Zone = true, true
	case corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferClose:
		wish.Zone = true
	}
	switch annotation {
	case PreferCluster:
		wish.Cluster = true
	case PreferNone:
	case "":
		wish.Cluster = operator == PreferCluster && trafficDistribution == ""
	default:
		return wish, fmt.Errorf("%q is no preference: use %q or %q", shorten(annotation), PreferCluster, PreferNone)
	}
	return wish, nil
}

// shorten bounds what a message tells of a text that another cluster wrote.
func shorten(text string) string {
	const most = 63
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// ValidatePreference returns an error where the operator's preference is
// unknown. Empty means PreferNone.
func ValidatePreference(operator string) error {
	switch operator {
	case "", PreferCluster, PreferNone:
		return nil
	}
	return fmt.Errorf("%q is no preference: use %q or %q", operator, PreferCluster, PreferNone)
}

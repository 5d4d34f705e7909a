// SPDX-License-Identifier: Apache-2.0

// Package locality decides which endpoints of a service the nodes of this cluster use first, and expresses it in
// topology hints for kube-proxy.
//
// The package is pure. docs/design.md#traffic gives the reasons for each decision.
package locality

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/traffic"
)

// Values of the annotation export.AnnotationPrefer and of the flag --prefer, besides lists of tiers.
const (
	// PreferCluster asks for endpoints of the local cluster first.
	PreferCluster = traffic.PreferCluster
	// PreferNone asks for no cluster first.
	PreferNone = traffic.PreferNone
)

// A Preference states which endpoints the clients of a service use first. Nearer ones precede: those of the node, then
// of the zone, then of the cluster. The zero value treats all endpoints alike.
type Preference struct {
	// Node and Zone come from the Service's trafficDistribution. Node implies Zone.
	Node, Zone bool
	// Cluster puts endpoints of the local cluster before those of all others. Tiers order the others.
	Cluster bool
}

// TiersOf returns the tiers of clusters of an import from its trafficDistribution and its annotation
// export.AnnotationPrefer, each empty if absent. operator is the value of --prefer, which applies to imports with
// neither. An invalid value has no effect; an invalid annotation is also an error.
func TiersOf(trafficDistribution, annotation, operator string) (traffic.Tiers, error) {
	if annotation != "" {
		return traffic.ParseTiers(annotation)
	}
	if trafficDistribution != "" {
		return traffic.Tiers{}, nil
	}
	tiers, _ := traffic.ParseTiers(operator) // ValidatePreference tells of the error
	return tiers, nil
}

// PreferenceOf returns the preference of an import: that of its trafficDistribution, and whether the first of its tiers
// is the local cluster. The parameters and the error are those of TiersOf.
func PreferenceOf(trafficDistribution, annotation, operator string) (Preference, error) {
	var preference Preference
	switch trafficDistribution {
	case corev1.ServiceTrafficDistributionPreferSameNode:
		preference.Node, preference.Zone = true, true
	case corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferClose:
		preference.Zone = true
	}
	tiers, err := TiersOf(trafficDistribution, annotation, operator)
	preference.Cluster = tiers.LocalFirst()
	return preference, err
}

// ValidatePreference returns an error if the value of --prefer is not valid. Empty means traffic.PreferNone.
func ValidatePreference(operator string) error {
	_, err := traffic.ParseTiers(operator)
	return err
}

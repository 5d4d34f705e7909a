// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// MaxZones is how many zones the API allows in the hints of one endpoint.
const MaxZones = 8

// elsewhere names a zone or node that does not exist, for hints that no node of this cluster follows.
const elsewhere = "elsewhere." + export.Domain

// ForNobody reports whether the zone or node of a hint matches no node of this cluster.
func ForNobody(name string) bool { return name == elsewhere }

// Nodes is the part of this cluster's Nodes that hints depend on.
type Nodes struct {
	// Zones are the values of the label topology.kubernetes.io/zone, sorted, each once, and none empty.
	Zones []string
	// SomeWithoutZone reports that a node lacks the label. kube-proxy ignores hints for zones on such a node.
	SomeWithoutZone bool
}

// CanPreferCluster reports whether hints can put endpoints of this cluster first: each node has a zone, and there are at
// most MaxZones.
func (n Nodes) CanPreferCluster() bool {
	return len(n.Zones) > 0 && len(n.Zones) <= MaxZones && !n.SomeWithoutZone
}

// hints makes the hints of the endpoints of one service in one cluster.
//
// kube-proxy follows hints only if every ready endpoint of a port has them, so either all endpoints of a service get
// hints or none.
type hints struct {
	// Endpoints of the node, and then of the local cluster or of the zone, are used first.
	node, cluster, zone bool
	zones               []string // of the local cluster
}

// newHints returns the hints that implement a trafficDistribution and, if cluster is set, put the local cluster first, which
// requires CanPreferCluster and replaces a preference for the zone. The result is nil if endpoints get no hints.
func newHints(distribution string, cluster bool, nodes Nodes) *hints {
	h := &hints{node: distribution == corev1.ServiceTrafficDistributionPreferSameNode, cluster: cluster, zones: nodes.Zones}
	h.zone = !cluster && len(nodes.Zones) > 0 && (h.node || distribution == corev1.ServiceTrafficDistributionPreferSameZone ||
		distribution == corev1.ServiceTrafficDistributionPreferClose)
	if !h.node && !h.zone && !h.cluster {
		return nil
	}
	return h
}

// of returns the endpoints with their hints; own is set for endpoints of the local cluster. The input stays unchanged and the
// result shares parts with it.
func (h *hints) of(own bool, endpoints []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	if h == nil {
		return endpoints
	}
	endpoints = slices.Clone(endpoints)
	for i := range endpoints {
		endpoint, hints, zones := &endpoints[i], &discoveryv1.EndpointHints{}, []string{elsewhere}
		switch zone := ptr.Deref(endpoint.Zone, ""); {
		case h.cluster && own:
			zones = h.zones
		case h.zone && zone != "":
			zones = []string{zone}
		}
		for _, zone := range zones {
			hints.ForZones = append(hints.ForZones, discoveryv1.ForZone{Name: zone})
		}
		if h.node { // endpoints of other clusters have no nodeName
			hints.ForNodes = []discoveryv1.ForNode{{Name: cmp.Or(ptr.Deref(endpoint.NodeName, ""), elsewhere)}}
		}
		endpoint.Hints = hints
	}
	return endpoints
}

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

// hints makes the hints of the endpoints of one service in one cluster. It is not safe for concurrent use.
//
// kube-proxy follows hints only if every ready endpoint of a port has them, so either all endpoints of a service get
// hints or none.
type hints struct {
	// Endpoints of the node, of the zone and of the local cluster are used first, in this order.
	node, zone, cluster bool
	all                 []string // the zones of this cluster
	// ready has the ports that ready endpoints of this cluster serve, by zone, if both zones and the cluster are preferred.
	ready map[served]bool
}

// served is a port that a ready endpoint in a zone serves.
type served struct {
	zone        string
	addressType discoveryv1.AddressType
	protocol    corev1.Protocol
	number      int32
}

// newHints returns the hints that implement a trafficDistribution and, if cluster is set, put this cluster first, which
// requires CanPreferCluster. own is this cluster's view of the service, nil if it does not export it. The result is nil
// if endpoints get no hints.
func newHints(distribution string, cluster bool, nodes Nodes, own *export.View) *hints {
	h := &hints{node: distribution == corev1.ServiceTrafficDistributionPreferSameNode, cluster: cluster, all: nodes.Zones}
	h.zone = len(nodes.Zones) > 0 && (h.node || distribution == corev1.ServiceTrafficDistributionPreferSameZone ||
		distribution == corev1.ServiceTrafficDistributionPreferClose)
	switch {
	case !h.node && !h.zone && !h.cluster:
		return nil
	case own == nil || !h.cluster || !h.zone:
		return h
	}
	h.ready = map[served]bool{}
	for _, slice := range own.Slices {
		for i := range slice.Endpoints {
			if endpoint := &slice.Endpoints[i]; export.IsReady(endpoint) {
				for _, target := range slice.Targets {
					h.ready[served{ptr.Deref(endpoint.Zone, ""), slice.AddressType, target.Protocol, target.Number}] = true
				}
			}
		}
	}
	return h
}

// of returns the endpoints with their hints. The endpoints are the endpoints of the slice, perhaps with other conditions;
// own is set for slices of this cluster. The input stays unchanged and the result shares parts with it.
func (h *hints) of(own bool, slice *export.Slice, endpoints []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	if h == nil || len(endpoints) == 0 {
		return endpoints
	}
	var bare []string // see without
	if own {
		bare = h.without(slice)
	}
	endpoints = slices.Clone(endpoints)
	for i := range endpoints {
		endpoints[i].Hints = h.make(own, &endpoints[i], bare)
	}
	return endpoints
}

// without returns the zones in which this cluster has no ready endpoint for some port of the slice. Clients there use
// endpoints of all its zones.
func (h *hints) without(slice *export.Slice) []string {
	if h.ready == nil {
		return h.all
	}
	var zones []string
	for _, zone := range h.all {
		if slices.ContainsFunc(slice.Targets, func(target export.Target) bool {
			return !h.ready[served{zone, slice.AddressType, target.Protocol, target.Number}]
		}) {
			zones = append(zones, zone)
		}
	}
	return zones
}

// make returns the hints of an endpoint. bare is the result of without for its slice.
func (h *hints) make(own bool, endpoint *discoveryv1.Endpoint, bare []string) *discoveryv1.EndpointHints {
	var zones []string
	zone := ptr.Deref(endpoint.Zone, "")
	switch {
	case h.cluster && !own:
	case h.cluster:
		zones = bare
		if slices.Contains(h.all, zone) && !slices.Contains(bare, zone) {
			zones = append(slices.Clone(bare), zone)
			slices.Sort(zones)
		}
	case h.zone && zone != "":
		zones = []string{zone}
	}
	if len(zones) == 0 {
		zones = []string{elsewhere}
	}
	hints := &discoveryv1.EndpointHints{}
	for _, zone := range zones {
		hints.ForZones = append(hints.ForZones, discoveryv1.ForZone{Name: zone})
	}
	if h.node {
		node := elsewhere
		if own {
			node = cmp.Or(ptr.Deref(endpoint.NodeName, ""), elsewhere)
		}
		hints.ForNodes = []discoveryv1.ForNode{{Name: node}}
	}
	return hints
}

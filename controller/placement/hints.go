// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// MaxZones is how many zones the API allows in the hints of one endpoint.
const MaxZones = 8

// elsewhere is the zone and the node in hints that no node of this cluster may follow.
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

// CanPreferCluster reports whether hints can put endpoints of this cluster first. That takes a zone of each node, and at
// most MaxZones.
func (n Nodes) CanPreferCluster() bool {
	return len(n.Zones) > 0 && len(n.Zones) <= MaxZones && !n.SomeWithoutZone
}

// A preference states which endpoints the clients of a service use first. Nearer ones precede: those of the node, then
// of the zone, then of the cluster. The zero value treats all endpoints alike.
type preference struct {
	// Node and Zone come from the Service's trafficDistribution. Node implies Zone.
	Node, Zone bool
	// Cluster puts endpoints of the local cluster before those of all others.
	Cluster bool
}

// hints makes the hints of the endpoints of one service in one cluster. It is not safe for concurrent use.
//
// kube-proxy follows hints only if every ready endpoint of a port has them, so either all endpoints of a service get
// hints or none.
type hints struct {
	preference preference
	all        []string // the zones of this cluster
	// ready has the ports that ready endpoints of this cluster serve, by zone.
	ready map[served]bool
	// made holds the hints made so far: equal ones are shared.
	made map[made]*discoveryv1.EndpointHints
}

// served is a port that a ready endpoint in a zone serves.
type served struct {
	zone        string
	addressType discoveryv1.AddressType
	protocol    corev1.Protocol
	number      int32
}

// made is what the hints of an endpoint depend on: its zone, its node, and whether it is of this cluster.
type made struct {
	own        bool
	zone, node string
}

// newHints returns the hints that implement a preference. own is this cluster's view of the service, nil if it does not
// export it. The result is nil if endpoints get no hints.
func newHints(wanted preference, nodes Nodes, own *export.View) *hints {
	wanted.Cluster = wanted.Cluster && nodes.CanPreferCluster()
	if len(nodes.Zones) == 0 {
		wanted.Zone = false
	}
	if wanted == (preference{}) {
		return nil
	}
	h := &hints{preference: wanted, all: nodes.Zones}
	if wanted.Cluster && wanted.Zone {
		h.lookAt(own)
	}
	return h
}

// lookAt notes the ports that ready endpoints of this cluster serve, by zone.
func (h *hints) lookAt(own *export.View) {
	h.ready = make(map[served]bool)
	if own == nil {
		return
	}
	for _, slice := range own.Slices {
		for i := range slice.Endpoints {
			zone := ptr.Deref(slice.Endpoints[i].Zone, "")
			if zone == "" || !isReady(&slice.Endpoints[i]) {
				continue
			}
			for _, target := range slice.Targets {
				h.ready[served{zone, slice.AddressType, target.Protocol, target.Number}] = true
			}
		}
	}
}

// of returns the endpoints with their hints. The endpoints are those of the slice, perhaps with other conditions; own
// tells that the slice is of this cluster. The input stays unchanged and the result shares parts with it.
func (h *hints) of(own bool, slice *export.Slice, endpoints []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	if h == nil || len(endpoints) == 0 {
		return endpoints
	}
	h.made = make(map[made]*discoveryv1.EndpointHints, 1)
	var bare []string // see without
	if own {
		bare = h.without(slice)
	}
	endpoints = slices.Clone(endpoints)
	for i := range endpoints {
		at := made{own: own}
		if h.preference.Zone {
			at.zone = ptr.Deref(endpoints[i].Zone, "")
		}
		if h.preference.Node && own {
			at.node = ptr.Deref(endpoints[i].NodeName, "")
		}
		hints := h.made[at]
		if hints == nil {
			hints = h.make(at, bare)
			h.made[at] = hints
		}
		endpoints[i].Hints = hints
	}
	return endpoints
}

// without returns the zones in which this cluster has no ready endpoint for some port of the slice. Clients there use
// endpoints of all its zones.
func (h *hints) without(slice *export.Slice) []string {
	if !h.preference.Cluster || !h.preference.Zone {
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
func (h *hints) make(at made, bare []string) *discoveryv1.EndpointHints {
	var zones []string
	switch {
	case h.preference.Cluster && !at.own:
	case h.preference.Cluster:
		zones = bare
		if at.zone != "" && slices.Contains(h.all, at.zone) && !slices.Contains(bare, at.zone) {
			zones = append(slices.Clone(bare), at.zone)
			slices.Sort(zones)
		}
	case at.zone != "":
		zones = []string{at.zone}
	}
	if len(zones) == 0 {
		zones = []string{elsewhere}
	}
	hints := &discoveryv1.EndpointHints{}
	for _, zone := range zones {
		hints.ForZones = append(hints.ForZones, discoveryv1.ForZone{Name: zone})
	}
	if h.preference.Node {
		hints.ForNodes = []discoveryv1.ForNode{{Name: elsewhere}}
		if at.node != "" {
			hints.ForNodes[0].Name = at.node
		}
	}
	return hints
}

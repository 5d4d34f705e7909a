// SPDX-License-Identifier: Apache-2.0

package locality

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// MaxZones is how many zones the API allows in the hints of one endpoint.
const MaxZones = 8

// elsewhere is the zone, and the node, of hints for nobody here.
const elsewhere = "elsewhere." + export.Domain

// ForNobody reports whether the zone or node of a hint stands for none that
// this cluster has.
func ForNobody(name string) bool { return strings.HasPrefix(name, elsewhere) }

// Nodes is what hints depend on of the nodes of this cluster.
type Nodes struct {
	// Zones are the values of the label topology.kubernetes.io/zone, sorted,
	// each once, and none empty.
	Zones []string
	// SomeWithoutZone tells that some node has no such label. kube-proxy
	// ignores the hints for zones there.
	SomeWithoutZone bool
}

// CanPreferCluster reports whether hints can say that endpoints of this
// cluster come first: there is a zone, and no more of them than the API allows.
func (n Nodes) CanPreferCluster() bool { return len(n.Zones) > 0 && len(n.Zones) <= MaxZones }

// Hints are the hints of the endpoints of one service in one cluster. They may
// be used by one goroutine at a time.
//
// kube-proxy follows them where every ready endpoint of a port has some, so
// that they are given to all endpoints of a service, or to none.
type Hints struct {
	wish Wish
	zone string // the zone that no node here has
	all  []string
	// ready are what endpoints of this cluster that are ready serve, by zone.
	ready map[served]bool
	// made shares equal hints.
	made map[made]*discoveryv1.EndpointHints
}

// served is a port that a ready endpoint in a zone has.
type served struct {
	zone        string
	addressType discoveryv1.AddressType
	protocol    corev1.Protocol
	number      int32
}

// made is one endpoint's zone and node, and whether it is of this cluster.
type made struct {
	own        bool
	zone, node string
}

// New returns the hints by which the nodes of this cluster do what is wished.
// own is this cluster's view of the service, nil where it does not export it.
// The result is nil where endpoints have no hints.
func New(wish Wish, nodes Nodes, own *export.View) *Hints {
	wish.Cluster = wish.Cluster && nodes.CanPreferCluster()
	if len(nodes.Zones) == 0 {
		wish.Zone = false
	}
	if wish == (Wish{}) {
		return nil
	}
	h := &Hints{wish: wish, all: nodes.Zones, zone: elsewhere}
	for slices.Contains(nodes.Zones, h.zone) {
		h.zone += "x"
	}
	if wish.Cluster && wish.Zone {
		h.lookAt(own)
	}
	return h
}

func (h *Hints) lookAt(own *export.View) {
	h.ready = make(map[served]bool)
	if own == nil {
		return
	}
	for i := range own.Slices {
		slice := &own.Slices[i]
		for j := range slice.Endpoints {
			endpoint := &slice.Endpoints[j]
			if endpoint.Zone == nil || !ptr.Deref(endpoint.Conditions.Ready, true) {
				continue
			}
			for _, target := range slice.Targets {
				h.ready[served{*endpoint.Zone, slice.AddressType, target.Protocol, target.Number}] = true
			}
		}
	}
}

// Of returns the endpoints with their hints. They are those of the slice,
// whose conditions may have been changed; own tells that the slice is of this
// cluster. The input stays unchanged, and the result shares parts with it.
func (h *Hints) Of(own bool, slice *export.Slice, endpoints []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	if h == nil || len(endpoints) == 0 {
		return endpoints
	}
	h.made = make(map[made]*discoveryv1.EndpointHints, 1)
	var bare []string // our zones that have nothing nearer than the cluster
	if own {
		bare = h.without(slice)
	}
	endpoints = slices.Clone(endpoints)
	for i := range endpoints {
		at := made{own: own}
		if h.wish.Zone {
			at.zone = ptr.Deref(endpoints[i].Zone, "")
		}
		if h.wish.Node && own {
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

// without are our zones in which this cluster has no ready endpoint for some
// port of the slice.
func (h *Hints) without(slice *export.Slice) []string {
	if !h.wish.Cluster || !h.wish.Zone {
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

// make returns the hints of an endpoint. bare is what without gave for its
// slice.
func (h *Hints) make(at made, bare []string) *discoveryv1.EndpointHints {
	var zones []string
	switch {
	case h.wish.Cluster && !at.own:
	case h.wish.Cluster:
		zones = bare
		if at.zone != "" && slices.Contains(h.all, at.zone) && !slices.Contains(bare, at.zone) {
			zones = append(slices.Clone(bare), at.zone)
			slices.Sort(zones)
		}
	case at.zone != "":
		zones = []string{at.zone}
	}
	if len(zones) == 0 {
		zones = []string{h.zone}
	}
	hints := &discoveryv1.EndpointHints{}
	for _, zone := range zones {
		hints.ForZones = append(hints.ForZones, discoveryv1.ForZone{Name: zone})
	}
	if h.wish.Node {
		hints.ForNodes = []discoveryv1.ForNode{{Name: elsewhere}}
		if at.node != "" {
			hints.ForNodes[0].Name = at.node
		}
	}
	return hints
}

// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
)

// Preference says which endpoints of a headless service come first.
type Preference uint8

const (
	// PreferDefault means the preference of the Corefile. If the Corefile sets none, no endpoint is preferred.
	PreferDefault Preference = iota
	// PreferNone treats all endpoints alike.
	PreferNone
	// PreferCluster puts the local cluster before all others.
	PreferCluster
	// PreferZone puts the zone of the client first, then the local cluster.
	PreferZone
)

// Node has the parts of a Node of the local cluster that a topology needs.
type Node struct {
	// Prefixes contain the addresses of clients on the node, masked: its pod CIDRs and its own addresses.
	Prefixes []netip.Prefix
	// Zone is empty if the node does not have the label.
	Zone string
}

// FromNode converts a Node. Clients in the node's own network, such as a DNS cache, have an internal address of the node.
func FromNode(object *corev1.Node) *Node {
	node := &Node{Zone: object.Labels[corev1.LabelTopologyZone]}
	for _, text := range object.Spec.PodCIDRs {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			node.Prefixes = append(node.Prefixes, prefix.Masked())
		}
	}
	for _, address := range object.Status.Addresses {
		if address.Type != corev1.NodeInternalIP {
			continue
		}
		if addr, err := netip.ParseAddr(address.Address); err == nil {
			node.Prefixes = append(node.Prefixes, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
		}
	}
	return node
}

// Topology locates clients in the local cluster. It is immutable.
type Topology struct {
	zones map[netip.Prefix]string
	bits  []int // the distinct lengths of the prefixes, longest first
}

// NewTopology returns the topology of a cluster from its nodes, in any order. Without nodes no client has a zone. The
// longest matching prefix counts; if several nodes have the same prefix, the zone that sorts last counts.
func NewTopology(nodes []Node) *Topology {
	t := &Topology{zones: make(map[netip.Prefix]string)}
	for _, node := range nodes {
		if node.Zone == "" {
			continue
		}
		for _, prefix := range node.Prefixes {
			t.zones[prefix] = max(t.zones[prefix], node.Zone)
			t.bits = append(t.bits, prefix.Bits())
		}
	}
	t.bits = distinct(t.bits, func(a, b int) int { return b - a })
	return t
}

// Zone returns the zone of a client by its address, which must not be an IPv4-mapped IPv6 address; empty if unknown.
func (t *Topology) Zone(client netip.Addr) string {
	for _, bits := range t.bits {
		prefix, _ := client.Prefix(bits) // the zero Prefix, which is in no map, if the address has fewer bits
		if zone, ok := t.zones[prefix]; ok {
			return zone
		}
	}
	return ""
}

// tiers is the number of tiers.
const tiers = 3

// tier returns the distance from a client in a zone to the endpoints of another zone; local means in the local cluster. 0 is
// the nearest. A client without a zone prefers the local cluster.
func tier(prefer Preference, client string, local bool, zone string) uint16 {
	switch zonal := prefer == PreferZone && client != ""; {
	case zonal && zone == client, !zonal && local:
		return 0
	case zonal && !local:
		return 2
	}
	return 1
}

// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Preference is which endpoints of a headless service come first.
type Preference uint8

const (
	// PreferDefault leaves the choice to the operator. An operator who does not choose prefers nothing.
	PreferDefault Preference = iota
	// PreferNone makes no difference between endpoints.
	PreferNone
	// PreferCluster puts the local cluster before all others.
	PreferCluster
	// PreferZone puts the zone of the client first, then its cluster, then its region.
	PreferZone
)

// Node is what a topology needs of a Node of the local cluster.
type Node struct {
	// Prefixes are the addresses of clients on the node, masked: those of its pods, and its own.
	Prefixes []netip.Prefix
	// Zone and Region are empty if the node has none.
	Zone, Region string
}

// FromNode reads a Node. Its clients are its pods, and what runs in its own network, such as a DNS cache.
func FromNode(object *corev1.Node) *Node {
	node := &Node{Zone: object.Labels[corev1.LabelTopologyZone], Region: object.Labels[corev1.LabelTopologyRegion]}
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
	zones   map[netip.Prefix]string
	bits    []int             // the lengths of the prefixes, the longest first
	regions map[string]string // of the zones that nodes are in
}

// NewTopology makes the topology of a cluster from its nodes, in any order. Without nodes all clients are of no zone. Of
// prefixes that overlap the longest counts, and of equal ones that of the last zone by name.
func NewTopology(nodes []Node) *Topology {
	t := &Topology{zones: make(map[netip.Prefix]string), regions: make(map[string]string)}
	for _, node := range nodes {
		if node.Zone == "" {
			continue
		}
		t.regions[node.Zone] = max(t.regions[node.Zone], node.Region)
		for _, prefix := range node.Prefixes {
			t.zones[prefix] = max(t.zones[prefix], node.Zone)
			t.bits = append(t.bits, prefix.Bits())
		}
	}
	slices.Sort(t.bits)
	t.bits = slices.Clip(slices.Compact(t.bits))
	slices.Reverse(t.bits)
	return t
}

// Place locates a client by its address, which is unmapped.
func (t *Topology) Place(client netip.Addr) Place {
	for _, bits := range t.bits {
		prefix, _ := client.Prefix(bits) // that of no node if the address is shorter
		if zone, ok := t.zones[prefix]; ok {
			return Place{topology: t, zone: zone}
		}
	}
	return Place{topology: t}
}

// Place is where a client is. The zero value is nowhere, and prefers nothing.
type Place struct {
	topology *Topology
	zone     string // empty if unknown
}

// Known reports whether the location of the client is known. Otherwise no endpoint is nearer than another.
func (p Place) Known() bool { return p.topology != nil }

// tiers is the number of tiers.
const tiers = 4

// Tier is how far from the client the endpoints of a zone are, in the local cluster or another: 0 is the nearest. A client
// that is in no zone prefers its cluster.
func (p Place) Tier(prefer Preference, local bool, zone string) uint16 {
	if prefer == PreferCluster || p.zone == "" {
		if local {
			return 0
		}
		return 1
	}
	region := p.topology.regions[p.zone]
	switch {
	case zone == p.zone:
		return 0
	case local:
		return 1
	case region != "" && p.topology.regions[zone] == region:
		return 2
	}
	return 3
}

// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// Preference is which endpoints of a headless service come first.
type Preference uint8

const (
	// PreferDefault is what is said where nothing is said: on an import it means what the operator prefers, and nothing
	// is preferred where the operator says nothing either.
	PreferDefault Preference = iota
	// PreferNone makes no difference between endpoints.
	PreferNone
	// PreferCluster puts the own cluster before all others.
	PreferCluster
	// PreferZone puts the zone of the client first, then its cluster, then its region.
	PreferZone
)

// Node is what a place depends on of a node of the own cluster.
type Node struct {
	// Prefixes are the addresses of clients on the node: its pods', and its own.
	Prefixes []netip.Prefix
	// Zone and Region are empty where the node has none.
	Zone, Region string
}

// Topology is where the clients of the own cluster are. It is immutable.
type Topology struct {
	// segments begin where another node's addresses begin, or nobody's. They are sorted.
	segments []segment
	// regions are those of the zones that nodes are in.
	regions map[string]string
}

type segment struct {
	first netip.Addr
	zone  string
}

// NewTopology makes the topology of a cluster of its nodes, in any order. Without nodes all clients are of no zone. Of
// prefixes that overlap the longest counts, and of equal ones that of the last zone by name.
func NewTopology(nodes []Node) *Topology {
	t := &Topology{regions: make(map[string]string)}
	type owned struct {
		netip.Prefix
		zone string
	}
	var all []owned
	for _, node := range nodes {
		if node.Zone == "" {
			continue
		}
		t.regions[node.Zone] = max(t.regions[node.Zone], node.Region)
		for _, prefix := range node.Prefixes {
			all = append(all, owned{prefix.Masked(), node.Zone})
		}
	}
	slices.SortFunc(all, func(a, b owned) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()), strings.Compare(a.zone, b.zone))
	})
	var around []owned // each lies in the one before
	leave := func() {
		inner := around[len(around)-1]
		around = around[:len(around)-1]
		outer := ""
		if len(around) > 0 {
			outer = around[len(around)-1].zone
		}
		t.begin(after(inner.Prefix), outer)
	}
	for _, each := range all {
		for len(around) > 0 && !around[len(around)-1].Contains(each.Addr()) {
			leave()
		}
		around = append(around, each)
		t.begin(each.Addr(), each.zone)
	}
	for len(around) > 0 {
		leave()
	}
	t.segments = slices.Clip(t.segments)
	return t
}

// after is the first address behind a prefix. Behind all of IPv4 lies IPv6, and behind that nothing.
func after(prefix netip.Prefix) netip.Addr {
	octets := prefix.Addr().AsSlice()
	for bit := prefix.Bits(); bit < 8*len(octets); bit++ {
		octets[bit/8] |= 1 << (7 - bit%8)
	}
	last := addrOf(octets)
	if next := last.Next(); next.IsValid() || last.Is6() {
		return next
	}
	return netip.IPv6Unspecified()
}

// begin lets a segment begin at an address that is not before the last one.
func (t *Topology) begin(first netip.Addr, zone string) {
	if !first.IsValid() {
		return
	}
	if n := len(t.segments); n > 0 && t.segments[n-1].first == first {
		t.segments = t.segments[:n-1]
	}
	if n := len(t.segments); n > 0 && t.segments[n-1].zone == zone || n == 0 && zone == "" {
		return
	}
	t.segments = append(t.segments, segment{first, zone})
}

// Place is where the client with that address is in the cluster whose id, in lower case, that is.
func (t *Topology) Place(cluster string, client netip.Addr) Place {
	client = client.Unmap().WithZone("")
	after, _ := slices.BinarySearchFunc(t.segments, client, func(s segment, client netip.Addr) int {
		if s.first.Compare(client) <= 0 {
			return -1
		}
		return 1
	})
	if after == 0 {
		return Place{topology: t, cluster: cluster}
	}
	return Place{topology: t, cluster: cluster, zone: t.segments[after-1].zone}
}

// Place is where a client is. The zero value is nowhere, and prefers nothing.
type Place struct {
	topology *Topology
	cluster  string // the own one
	zone     string // empty where it is not known
}

// tier is how far from the client the endpoints of a cluster and zone are: 0 is the nearest. A client that is in no
// zone prefers its cluster.
func (p Place) tier(prefer Preference, cluster, zone string) uint16 {
	own := cluster != "" && cluster == p.cluster
	if prefer == PreferCluster || p.zone == "" {
		if own {
			return 0
		}
		return 1
	}
	region := p.topology.regions[p.zone]
	switch {
	case zone == p.zone:
		return 0
	case own:
		return 1
	case zone != "" && region != "" && p.topology.regions[zone] == region:
		return 2
	}
	return 3
}

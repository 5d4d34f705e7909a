// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// endpoint is one address while the blocks are built. Its class is filled in step by step.
type endpoint struct {
	Class

	addr  netip.Addr
	host  string // empty if the address gives the host name
	state condition
}

// buildHeadless sorts the endpoints of a headless service into blocks.
//
// An endpoint is usable if it is ready. If a name has no ready endpoint, its serving and terminating endpoints are
// usable. This is decided separately for the service name and for each host name. SRV follows the service name, and
// also lists each host whose best endpoint is waiting. For example, these endpoints make three blocks:
//
//	east 10.1.0.1 hostname db-0   block 1: east, named, InService, InHost, Target: db-0 10.1.0.1, db-1 10.1.0.2
//	east 10.1.0.2 hostname db-1   block 2: west, InService, InHost, Target: 10.2.0.1
//	west 10.2.0.1                 block 3: west, InHost: 10.2.0.2, for its host name alone
//	west 10.2.0.2 terminating
//
// A of the service returns the addresses of blocks 1 and 2, SRV the targets db-0.east, db-1.east and 10-2-0-1.west, and
// A of 10-2-0-2.west the address of block 3.
func (s *Service) buildHeadless(all []*Endpoints) {
	b := blockBuilder{service: s, ports: make(portSets), maxHost: s.room() - len(".."), blocks: make(map[Class]int)}
	for _, from := range all {
		if s.Import.HasFamily(from.Size) {
			b.collect(from)
		}
	}
	slices.SortFunc(b.endpoints, func(a, b *endpoint) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.host, b.host), a.addr.Compare(b.addr))
	})
	b.seen = make(map[netip.Addr]struct{}, len(b.endpoints))
	for rest := b.endpoints; len(rest) > 0; {
		end := 1
		for end < len(rest) && rest[end].sameHost(rest[0]) {
			end++
		}
		b.addHost(rest[:end])
		rest = rest[end:]
	}
	s.Blocks = make([]Block, len(b.members))
	for i, members := range b.members {
		s.Blocks[i] = newBlock(members)
	}
}

// newBlock packs endpoints of one class.
func newBlock(members []*endpoint) Block {
	block := Block{Class: members[0].Class, addrs: make([]byte, 0, len(members)*int(members[0].Size))}
	hosts := make([]string, len(members))
	for i, e := range members {
		block.addrs, _ = e.addr.AppendBinary(block.addrs)
		hosts[i] = e.host
	}
	if block.Named {
		block.hosts = packHostnames(hosts)
	}
	return block
}

// sameHost reports whether two endpoints have the same host name or, without a hostname, the same address.
func (e *endpoint) sameHost(other *endpoint) bool {
	return e.Cluster == other.Cluster && e.host == other.host && (e.host != "" || e.addr == other.addr)
}

// blockBuilder collects endpoints, and sorts them into blocks.
type blockBuilder struct {
	service   *Service
	ports     portSets
	maxHost   int // octets available for a host and its cluster id
	endpoints []*endpoint
	anyReady  bool // whether any endpoint of the service is ready
	seen      map[netip.Addr]struct{}
	members   [][]*endpoint // by block
	blocks    map[Class]int // index in members
}

// collect unpacks the endpoints of a slice.
func (b *blockBuilder) collect(from *Endpoints) {
	b.service.Skips.AddAll(from.skips)
	b.anyReady = b.anyReady || from.ready > 0
	ports := b.ports.set(b.service.fitting(from.ports))
	endpoints := make([]endpoint, from.Len())
	for i := range endpoints {
		e := &endpoints[i]
		e.Class, e.Ports, e.state = from.Class, ports, from.condition(i)
		e.addr, _ = netip.AddrFromSlice(from.Addr(i))
		if from.zones != nil {
			e.Zone = from.zones[i]
		}
		if e.Cluster != "" && from.hosts != nil {
			e.host = string(from.hosts.Append(nil, i))
		}
		b.nameHost(e)
		b.endpoints = append(b.endpoints, e)
	}
}

// nameHost sets the endpoint's host name. A hostname that is the label of an address is replaced by the label of the
// endpoint's address. The endpoint has no host name if host and cluster id take too many octets.
func (b *blockBuilder) nameHost(e *endpoint) {
	if parseHostLabel(e.host).IsValid() {
		e.host = ""
	}
	if e.Cluster == "" || maxLabel+len(e.Cluster) <= b.maxHost {
		return // any host label fits
	}
	if cmp.Or(len(e.host), len(appendHostLabel(nil, e.addr)))+len(e.Cluster) > b.maxHost {
		e.host, e.Cluster = "", ""
		b.service.Skips.Add(NameTooLong, 1)
	}
}

// mergeAddresses merges endpoints of a host that have the same address in several slices. The endpoints are sorted by
// address. Ports are not merged.
func mergeAddresses(host []*endpoint) []*endpoint {
	merged := host[:1]
	for _, e := range host[1:] {
		last := merged[len(merged)-1]
		switch {
		case e.addr != last.addr:
			merged = append(merged, e)
		case e.state == last.state:
			last.Zone = max(last.Zone, e.Zone)
			last.Priority, last.Weight = min(last.Priority, e.Priority), max(last.Weight, e.Weight)
		case e.state > last.state:
			*last = *e
		}
	}
	return merged
}

// addHost adds the endpoints of one host name or, without a hostname, of one address.
func (b *blockBuilder) addHost(host []*endpoint) {
	best := terminating
	for i := range host {
		best = max(best, host[i].state)
	}
	usable := func(e *endpoint) bool { return e.state == ready || !b.anyReady }
	// If the best endpoint of a host is waiting, its waiting endpoints have SRV records even while other hosts are ready.
	listed := func(e *endpoint) bool { return usable(e) || e.state == waiting && best == waiting }
	var ports *PortSet
	for i := range host {
		if listed(host[i]) {
			ports = b.ports.union(ports, host[i].Ports)
		}
	}
	isTarget := false
	for _, e := range mergeAddresses(host) {
		_, twice := b.seen[e.addr]
		e.Named = e.host != ""
		e.InService = usable(e) && !twice
		e.InHost = e.Cluster != "" && (e.state == ready || best < ready)
		e.Target = e.Cluster != "" && listed(e) && !isTarget
		if e.Target {
			isTarget, e.Ports = true, ports
		} else {
			e.Ports, e.Priority, e.Weight = nil, 0, 0
		}
		if e.InService {
			b.seen[e.addr] = struct{}{}
		}
		if !e.InService && !e.InHost {
			continue
		}
		at, known := b.blocks[e.Class]
		if !known {
			at = len(b.members)
			b.blocks[e.Class] = at
			b.members = append(b.members, nil)
		}
		b.members[at] = append(b.members[at], e)
	}
}

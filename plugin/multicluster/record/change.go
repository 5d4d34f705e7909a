// SPDX-License-Identifier: Apache-2.0

package record

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// This file builds the next state of a headless service from the last one: it costs what the slices that changed cost,
// and about a nanosecond for each address of the service, not what the service costs. The result equals that of a build
// from all slices, which is done instead where a change concerns more than some hosts: if the service's first endpoint
// becomes ready or its last one is no longer, if a hostname is the label of another address, if a name is too long, or
// if hosts share an address.

// basis is what the blocks of a service were built from.
type basis struct {
	slices   []*object.Endpoints
	count    int // of endpoints, with those that have no entry of their own
	anyReady bool
	special  bool // see collector
}

// Rebuild is Build for a service of which s is another state, the last one if possible, or nil.
func (s *Service) Rebuild(config *Config, imported *object.Import, endpoints []*object.Endpoints) *Service {
	if s == nil || s.Import != imported || s.basis == nil || s.basis.special {
		return Build(config, imported, endpoints)
	}
	gone, come := changedSlices(s.basis.slices, endpoints)
	next := change{before: s, ports: newPortSets(config, imported)}
	for i := range s.Blocks {
		next.ports.know(s.Blocks[i].Ports)
	}
	after, ok := next.apply(endpoints, gone, come)
	if !ok {
		return Build(config, imported, endpoints)
	}
	return after
}

// changedSlices are the slices in which two lists differ.
func changedSlices(before, after []*object.Endpoints) (gone, come []*object.Endpoints) {
	both := min(len(before), len(after))
	for i := range both {
		if before[i] != after[i] {
			gone, come = append(gone, before[i]), append(come, after[i])
		}
	}
	gone, come = append(gone, before[both:]...), append(come, after[both:]...)
	if len(before) == len(after) && len(gone) < 2 {
		return gone, come
	}
	moved := make(map[*object.Endpoints]struct{}, len(come))
	for _, e := range come {
		moved[e] = struct{}{}
	}
	stayed := make(map[*object.Endpoints]struct{})
	gone = slices.DeleteFunc(gone, func(e *object.Endpoints) bool {
		if _, ok := moved[e]; ok {
			stayed[e] = struct{}{}
			return true
		}
		return false
	})
	come = slices.DeleteFunc(come, func(e *object.Endpoints) bool { _, ok := stayed[e]; return ok })
	return gone, come
}

// change is a change of some slices of a service.
type change struct {
	before *Service
	ports  *portSets
	hosts  []*endpoint // one endpoint of each host that changes, sorted
	found  [][]entry   // by the number of the block: the entries of these hosts in the last state
	count  int         // of found
	rest   bool        // endpoints of these hosts may be in other slices
}

// apply builds the next state. ok is false if it depends on more than the slices that changed.
func (c *change) apply(all, gone, come []*object.Endpoints) (after *Service, ok bool) {
	before := c.before
	made := basis{slices: all, anyReady: anyReady(before.Import, all)}
	if made.anyReady != before.basis.anyReady {
		return nil, false
	}
	after = &Service{Headless: true, Import: before.Import, Skips: maps.Clone(before.Skips), basis: &made}
	var goneSkips, comeSkips object.Skips
	old, now := newCollector(c.ports, &goneSkips), newCollector(c.ports, &comeSkips)
	for _, e := range gone {
		old.collect(e)
	}
	for _, e := range come {
		now.collect(e)
	}
	if now.special() {
		return nil, false
	}
	made.count = before.basis.count - len(old.endpoints) + len(now.endpoints)
	after.Skips.AddAll(goneSkips, -1)
	after.Skips.AddAll(comeSkips, +1)
	c.compare(sorted(old.endpoints), sorted(now.endpoints))

	members := c.ofHosts(now.endpoints)
	if c.rest || before.basis.count != before.blockLen() {
		members = c.members(all)
	}
	if c.shared(members) {
		return nil, false
	}
	builder := newBlockBuilder(c.ports, made.anyReady, members)
	builder.addHosts()
	after.Blocks = c.edit(&builder)
	after.Exists = slices.ContainsFunc(after.Blocks, func(b Block) bool { return b.InService })
	return after, true
}

// sorted sorts endpoints by host.
func sorted(endpoints []endpoint) []endpoint {
	slices.SortFunc(endpoints, func(a, b endpoint) int { return compareEndpoints(&a, &b) })
	return endpoints
}

// compare finds the hosts whose endpoints differ, and their entries in the last state.
func (c *change) compare(old, now []endpoint) {
	c.found = make([][]entry, len(c.before.Blocks))
	for len(old) > 0 || len(now) > 0 {
		var host *endpoint
		if len(old) == 0 || len(now) > 0 && compareEndpoints(&now[0], &old[0]) < 0 {
			host = &now[0]
		} else {
			host = &old[0]
		}
		was, is := sameHost(old, host), sameHost(now, host)
		if !slices.Equal(was, is) {
			c.hosts = append(c.hosts, host)
			c.find(host, was)
		}
		old, now = old[len(was):], now[len(is):]
	}
}

// sameHost are the first endpoints if they are of the host.
func sameHost(endpoints []endpoint, host *endpoint) []endpoint {
	n := 0
	for n < len(endpoints) && endpoints[n].sameHost(host) {
		n++
	}
	return endpoints[:n]
}

// find finds the entries of a host in the last state. was are its endpoints in the slices that changed.
func (c *change) find(host *endpoint, was []endpoint) {
	for _, size := range [...]uint8{4, 16} {
		if host.host == "" && int(size) != host.addr.BitLen()/8 {
			continue
		}
		from, to := c.before.ClusterBlocks(size, host.cluster)
		for i := from; i < to; i++ {
			b := &c.before.Blocks[i]
			if b.Named != (host.host != "") {
				continue
			}
			for first, last := b.Find(host.host, host.addr); first < last; first++ {
				addr, _ := netip.AddrFromSlice(b.Addr(first))
				c.found[i] = append(c.found[i], entry{addr, host.host})
				c.count++
				c.rest = c.rest || !slices.ContainsFunc(was, func(e endpoint) bool { return e.addr == addr })
			}
		}
	}
}

// ofHosts are the endpoints of the hosts that change, in a new list.
func (c *change) ofHosts(endpoints []endpoint) []endpoint {
	var members []endpoint
	for i := range endpoints {
		_, ok := slices.BinarySearchFunc(c.hosts, &endpoints[i], func(host, e *endpoint) int {
			if host.sameHost(e) {
				return 0
			}
			return compareEndpoints(host, e)
		})
		if ok {
			members = append(members, endpoints[i])
		}
	}
	return members
}

// members are the endpoints in all slices of the hosts that change.
func (c *change) members(all []*object.Endpoints) []endpoint {
	var skips object.Skips
	from := newCollector(c.ports, &skips)
	for _, e := range all {
		from.collect(e)
	}
	return c.ofHosts(from.endpoints)
}

// shared reports whether an address of the hosts that change is one of another host, too.
func (c *change) shared(members []endpoint) bool {
	var few fewAddresses
	for i := range members {
		few.add(members[i].addr)
	}
	for _, entries := range c.found {
		for _, e := range entries {
			few.add(e.addr)
		}
	}
	count := 0
	for i := range c.before.Blocks {
		count += c.before.Blocks[i].count(&few)
	}
	return count > c.count
}

// edit are the blocks without what was found, and with the drafts.
func (c *change) edit(builder *blockBuilder) []Block {
	blocks := make([]Block, 0, len(c.before.Blocks)+len(builder.drafts))
	for i := range c.before.Blocks {
		b := &c.before.Blocks[i]
		var added []entry
		if at, ok := builder.numbers[b.Class]; ok {
			added = builder.entries(builder.drafts[at].members, nil)
			builder.drafts[at].members = nil
		}
		if len(c.found[i])+len(added) == 0 {
			blocks = append(blocks, *b)
		} else if b.Len()+len(added) > len(c.found[i]) {
			blocks = append(blocks, b.edited(c.found[i], added))
		}
	}
	for i := range builder.drafts {
		if d := &builder.drafts[i]; len(d.members) > 0 {
			blocks = append(blocks, builder.block(d))
		}
	}
	sortBlocks(blocks)
	return slices.Clip(blocks)
}

// fewAddresses is a set of addresses, to be asked for many.
type fewAddresses struct {
	addrs  map[string]struct{}
	filter [64]uint64
}

func (s *fewAddresses) add(addr netip.Addr) {
	if s.addrs == nil {
		s.addrs = make(map[string]struct{})
	}
	octets := addr.AsSlice()
	s.addrs[string(octets)] = struct{}{}
	s.filter[octets[len(octets)-2]%64] |= 1 << (octets[len(octets)-1] % 64)
}

// count is how many addresses of the block are in the set.
func (b *Block) count(set *fewAddresses) (count int) {
	size := int(b.Size)
	for k := range b.leaves {
		p := b.page(k)
		for last := size - 1; last < len(p.addrs); last += size {
			if set.filter[p.addrs[last-1]%64]>>(p.addrs[last]%64)&1 == 0 {
				continue
			}
			if _, ok := set.addrs[string(p.addrs[last+1-size:last+1])]; ok {
				count++
			}
		}
	}
	return count
}

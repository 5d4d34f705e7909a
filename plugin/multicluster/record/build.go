// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// endpoint is an address on its way into a block.
type endpoint struct {
	addr    netip.Addr
	host    string // empty if the address names the endpoint
	cluster string // empty if the endpoint has no host name
	zone    string // empty if unknown
	ports   *PortSet
	srv     object.SRV
	state   readiness
}

// readiness is how an endpoint can be used. A greater one is better.
type readiness uint8

const (
	terminating readiness = iota // and serving: used while no endpoint is ready
	waiting                      // the same, and listed by SRV in any case
	ready
)

// sameHost reports whether two endpoints of a service have the same host name, or are the same nameless address.
func (e *endpoint) sameHost(other *endpoint) bool {
	return e.cluster == other.cluster && e.host == other.host && (e.host != "" || e.addr == other.addr)
}

// compareEndpoints brings the addresses of a host together, IPv4 before IPv6.
func compareEndpoints(a, b *endpoint) int {
	if c := strings.Compare(a.cluster, b.cluster); c != 0 {
		return c
	}
	if c := strings.Compare(a.host, b.host); c != 0 {
		return c
	}
	return a.addr.Compare(b.addr)
}

// buildBlocks sorts the endpoints of a headless service into blocks.
//
// An endpoint is usable if it is ready. If a name has no ready endpoint, those that are serving and terminating answer
// for it. This is decided for the service name, which SRV follows, and for each host name by itself. SRV also lists host
// names that only wait for endpoints that come before. For example, these endpoints make three blocks:
//
//	east 10.1.0.1 hostname db-0   block 1: east, named, InService, InHost, Target: db-0 10.1.0.1, db-1 10.1.0.2
//	east 10.1.0.2 hostname db-1   block 2: west, InService, InHost, Target: 10.2.0.1
//	west 10.2.0.1                 block 3: west, InHost: 10.2.0.2, for its host name alone
//	west 10.2.0.2 terminating
//
// A of the service has the addresses of blocks 1 and 2, SRV the targets db-0.east, db-1.east and 10-2-0-1.west, and A
// of 10-2-0-2.west the address of block 3.
func buildBlocks(
	config *Config, imported *object.Import, all []*object.Endpoints, skips *object.Skips,
) []Block {
	c := newCollector(newPortSets(config, imported), skips)
	count := 0
	for _, from := range all {
		count += from.Len()
	}
	c.endpoints = make([]endpoint, 0, count)
	for _, from := range all {
		c.collect(from)
	}
	c.nameAlike()
	builder := blockBuilder{
		ports: c.ports, endpoints: c.endpoints, numbers: make(map[Class]int), seen: newAddressSet(c.endpoints),
		anyReady: anyReady(imported, all),
	}
	builder.addHosts()
	blocks := make([]Block, len(builder.drafts))
	for i := range blocks {
		blocks[i] = builder.block(&builder.drafts[i])
	}
	slices.SortFunc(blocks, func(a, b Block) int {
		if c := a.compare(&b.Class); c != 0 {
			return c
		}
		return a.compareFirst(&b)
	})
	return blocks
}

// anyReady reports whether one of the endpoints of a family that the import has is ready.
func anyReady(imported *object.Import, all []*object.Endpoints) bool {
	return slices.ContainsFunc(all, func(e *object.Endpoints) bool { return e.Ready > 0 && imported.HasFamily(e.Size) })
}

// sortedOrder are the numbers of the endpoints in their order. Sorting numbers is faster: endpoints are large and full
// of pointers.
func sortedOrder(endpoints []endpoint) []int32 {
	order := make([]int32, len(endpoints))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return compareEndpoints(&endpoints[a], &endpoints[b]) })
	return order
}

// collector unpacks endpoints, in an order that does not matter.
type collector struct {
	ports     *portSets
	skips     *object.Skips
	maxHost   int // octets of a host and its cluster id
	endpoints []endpoint
	alike     map[hostKey]string // the hostnames that are the label of another address of their cluster
	hosts     []string
}

func newCollector(ports *portSets, skips *object.Skips) collector {
	return collector{ports: ports, skips: skips, maxHost: ports.config.room(ports.imported) - len("..")}
}

// collect unpacks the endpoints of a slice, unless the import has another family.
func (c *collector) collect(from *object.Endpoints) {
	if !c.ports.imported.HasFamily(from.Size) {
		return
	}
	c.skips.AddAll(from.Skips, +1)
	ports := c.ports.slice(from.Ports)
	if ports.tooLong {
		c.skips.Add(object.NameTooLong, 1)
	}
	c.hosts = from.AppendHosts(c.hosts[:0])
	for i := range from.Len() {
		e := endpoint{
			addr: from.Addr(i), cluster: from.Cluster, zone: from.Zone(i), ports: ports.set, srv: from.SRV,
		}
		switch {
		case from.IsReady(i):
			e.state = ready
		case from.IsWaiting(i):
			e.state = waiting
		}
		var of netip.Addr // whose label the hostname is, if any
		if len(c.hosts) > 0 && c.hosts[i] != "" {
			e.host = c.hosts[i]
			of = ParseHostLabel(e.host)
		}
		if !e.nameHost(of, c.maxHost) {
			c.skips.Add(object.NameTooLong, 1)
		}
		if e.host != "" && of.IsValid() {
			if c.alike == nil {
				c.alike = make(map[hostKey]string)
			}
			c.alike[hostKey{e.cluster, of}] = e.host
		}
		c.endpoints = append(c.endpoints, e)
	}
}

// nameAlike names endpoints by hostnames that are the label of their address: in DNS the two are one host.
func (c *collector) nameAlike() {
	if len(c.alike) == 0 {
		return
	}
	for i := range c.endpoints {
		if e := &c.endpoints[i]; e.host == "" {
			e.host = c.alike[hostKey{e.cluster, e.addr}]
		}
	}
}

// nameHost decides on the endpoint's host name: no hostname if it is what the address gives anyway, and none at all
// without a cluster id, or if host and cluster id take more than maxHost octets; then it returns false. The argument of
// is the address whose label the hostname is, if any.
func (e *endpoint) nameHost(of netip.Addr, maxHost int) bool {
	if e.cluster == "" || of == e.addr {
		e.host = ""
	}
	if e.cluster == "" || object.MaxLabel+len(e.cluster) <= maxHost {
		return true // whatever the host is
	}
	length := len(e.host)
	if length == 0 {
		var label [object.MaxLabel]byte
		length = len(appendHostLabel(label[:0], e.addr))
	}
	if length+len(e.cluster) > maxHost {
		e.host, e.cluster = "", ""
		return false
	}
	return true
}

// hostKey identifies a host that is named by its address.
type hostKey struct {
	cluster string
	addr    netip.Addr
}

// mergeAddresses merges endpoints with the same address, which was in several slices of a host. They are sorted by
// address. Their ports are not merged.
func mergeAddresses(host []hostEndpoint) []hostEndpoint {
	merged := host[:1]
	for _, e := range host[1:] {
		last := &merged[len(merged)-1]
		if e.addr != last.addr {
			merged = append(merged, e)
			continue
		}
		switch {
		case e.state == last.state:
			last.zone = max(last.zone, e.zone)
			last.srv.Priority = min(last.srv.Priority, e.srv.Priority)
			last.srv.Weight = max(cmp.Or(last.srv.Weight, usualWeight), cmp.Or(e.srv.Weight, usualWeight))
		case e.state > last.state:
			last.zone, last.state, last.srv = e.zone, e.state, e.srv
		}
	}
	return merged
}

// blockBuilder makes drafts of blocks.
type blockBuilder struct {
	ports     *portSets
	endpoints []endpoint
	drafts    []draft
	numbers   map[Class]int // of the drafts
	last      int           // the number of the last draft that was used
	sets      []*PortSet    // of a host
	seen      addressSet
	anyReady  bool // of all endpoints of the service
}

// addressSet is a set of addresses.
type addressSet struct {
	v4 map[[4]byte]struct{}
	v6 map[[16]byte]struct{}
}

// newAddressSet has room for the addresses of the endpoints.
func newAddressSet(endpoints []endpoint) addressSet {
	v4 := 0
	for i := range endpoints {
		if endpoints[i].addr.Is4() {
			v4++
		}
	}
	return addressSet{make(map[[4]byte]struct{}, v4), make(map[[16]byte]struct{}, len(endpoints)-v4)}
}

// add adds an address and reports whether it is new.
func (s addressSet) add(addr netip.Addr) bool {
	if addr.Is4() {
		before := len(s.v4)
		s.v4[addr.As4()] = struct{}{}
		return len(s.v4) > before
	}
	before := len(s.v6)
	s.v6[addr.As16()] = struct{}{}
	return len(s.v6) > before
}

// draft is a block in the making.
type draft struct {
	Class
	members []int32 // the numbers of its endpoints, sorted
}

// block is the finished draft.
func (b *blockBuilder) block(d *draft) Block {
	made := Block{Class: d.Class, addrs: make([]byte, 0, len(d.members)*int(d.Size))}
	var hosts []string
	if d.Named {
		hosts = make([]string, len(d.members))
	}
	var label [object.MaxLabel]byte
	for at, i := range d.members {
		e := &b.endpoints[i]
		made.addrs, _ = e.addr.AppendBinary(made.addrs)
		if d.Named {
			hosts[at] = e.host
			made.HostOctets += len(e.host)
		} else {
			made.HostOctets += len(appendHostLabel(label[:0], e.addr))
		}
	}
	if d.Named {
		packed := object.PackHostnames(hosts)
		made.hosts = &packed
	}
	return made
}

// addHosts adds all endpoints.
func (b *blockBuilder) addHosts() {
	order := sortedOrder(b.endpoints)
	host := make([]hostEndpoint, 0, 4) // of one host name, or one nameless address; few have more addresses
	for len(order) > 0 {
		host = append(host[:0], hostEndpoint{b.endpoints[order[0]], order[0]})
		for order = order[1:]; len(order) > 0 && b.endpoints[order[0]].sameHost(&host[0].endpoint); order = order[1:] {
			host = append(host, hostEndpoint{b.endpoints[order[0]], order[0]})
		}
		b.addHost(host)
	}
}

// hostEndpoint is an endpoint of a host, and its number.
type hostEndpoint struct {
	endpoint
	number int32
}

// addHost adds the endpoints of one host name, or one nameless address.
func (b *blockBuilder) addHost(host []hostEndpoint) {
	usable := func(e *endpoint) bool { return e.state == ready || !b.anyReady }
	best := terminating
	for i := range host {
		best = max(best, host[i].state)
	}
	// Of a host that waits, an endpoint that is used has the records.
	listed := func(e *endpoint) bool { return usable(e) || e.state == waiting && best == waiting }
	b.sets = b.sets[:0]
	for i := range host {
		if set := host[i].ports; set != nil && listed(&host[i].endpoint) {
			b.sets = append(b.sets, set)
		}
	}
	ports := b.ports.union(b.sets)
	host = mergeAddresses(host)
	isTarget := false
	for i := range host {
		e := &host[i].endpoint
		class := Class{
			Cluster:   e.cluster,
			Zone:      e.zone,
			Size:      uint8(e.addr.BitLen() / 8),
			Named:     e.host != "",
			InService: usable(e) && b.seen.add(e.addr),
			InHost:    e.cluster != "" && (e.state == ready || best < ready),
			Target:    e.cluster != "" && listed(e) && !isTarget,
		}
		if class.Target {
			isTarget, class.Ports = true, ports
			class.Priority, class.Weight = e.srv.Priority, cmp.Or(e.srv.Weight, usualWeight)
		}
		if class.InService || class.InHost {
			d := b.draft(class)
			d.members = append(d.members, host[i].number)
		}
	}
}

// draft returns the draft of the class. Most hosts have that of the host before.
func (b *blockBuilder) draft(class Class) *draft {
	if b.last < len(b.drafts) && b.drafts[b.last].Class == class {
		return &b.drafts[b.last]
	}
	if at, ok := b.numbers[class]; ok {
		b.last = at
		return &b.drafts[at]
	}
	b.last = len(b.drafts)
	b.numbers[class] = b.last
	b.drafts = append(b.drafts, draft{Class: class})
	return &b.drafts[b.last]
}

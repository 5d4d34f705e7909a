// SPDX-License-Identifier: Apache-2.0

package record

import (
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
	ready   bool
}

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
// for it. This is decided for the service name, which SRV follows, and for each host name by itself. For example, these
// endpoints make three blocks:
//
//	east 10.1.0.1 hostname db-0   block 1: east, named, InService, InHost, Target: db-0 10.1.0.1, db-1 10.1.0.2
//	east 10.1.0.2 hostname db-1   block 2: west, InService, InHost, Target: 10.2.0.1
//	west 10.2.0.1                 block 3: west, InHost: 10.2.0.2, for its host name alone
//	west 10.2.0.2 terminating
//
// A of the service has the addresses of blocks 1 and 2, SRV the targets db-0.east, db-1.east and 10-2-0-1.west, and A
// of 10-2-0-2.west the address of block 3.
func buildBlocks(config *Config, imported *object.Import, all []*object.Endpoints, skips *object.Skips) []Block {
	all = slices.DeleteFunc(slices.Clone(all), func(e *object.Endpoints) bool { return !imported.HasFamily(e.Size) })
	ports := newPortSets(config, imported)
	endpoints := collectEndpoints(ports, all, skips)
	builder := blockBuilder{
		ports:    ports,
		numbers:  make(map[Class]int),
		seen:     newAddressSet(all),
		count:    len(endpoints),
		anyReady: slices.ContainsFunc(all, func(e *object.Endpoints) bool { return e.Ready > 0 }),
	}
	order := sortedOrder(endpoints)
	host := make([]endpoint, 0, 4) // of one host name, or one nameless address; few have more addresses
	for len(order) > 0 {
		host = append(host[:0], endpoints[order[0]])
		for order = order[1:]; len(order) > 0 && endpoints[order[0]].sameHost(&host[0]); order = order[1:] {
			host = append(host, endpoints[order[0]])
		}
		builder.addHost(host)
	}
	return builder.blocks()
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

// collectEndpoints unpacks the endpoints, in an order that does not matter.
func collectEndpoints(sets *portSets, all []*object.Endpoints, skips *object.Skips) []endpoint {
	count := 0
	for _, from := range all {
		count += from.Len()
	}
	endpoints := make([]endpoint, 0, count)
	maxHost := sets.config.room(sets.imported) - len("..")
	alike := make(map[hostKey]string) // the hostnames that are the label of another address of their cluster
	var hosts []string
	for _, from := range all {
		skips.AddAll(from.Skips, +1)
		ports := sets.slice(from.Ports)
		if ports.tooLong {
			skips.Add(object.NameTooLong, 1)
		}
		hosts = from.AppendHosts(hosts[:0])
		for i := range from.Len() {
			e := endpoint{
				addr: from.Addr(i), cluster: from.Cluster, zone: from.Zone(i), ports: ports.set, ready: i < from.Ready,
			}
			var of netip.Addr // whose label the hostname is, if any
			if len(hosts) > 0 && hosts[i] != "" {
				e.host = hosts[i]
				of = ParseHostLabel(e.host)
			}
			if !e.nameHost(of, maxHost) {
				skips.Add(object.NameTooLong, 1)
			}
			if e.host != "" && of.IsValid() {
				alike[hostKey{e.cluster, of}] = e.host
			}
			endpoints = append(endpoints, e)
		}
	}
	if len(alike) > 0 {
		for i := range endpoints {
			endpoints[i].nameAlike(alike)
		}
	}
	return endpoints
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

// nameAlike names an endpoint by a hostname if another endpoint of its cluster has the label of its address as
// hostname: in DNS the two are one host.
func (e *endpoint) nameAlike(alike map[hostKey]string) {
	if e.host == "" {
		e.host = alike[hostKey{e.cluster, e.addr}]
	}
}

// mergeAddresses merges endpoints with the same address, which was in several slices of a host. They are sorted by
// address. Their ports are not merged.
func mergeAddresses(host []endpoint) []endpoint {
	merged := host[:1]
	for _, e := range host[1:] {
		last := &merged[len(merged)-1]
		if e.addr != last.addr {
			merged = append(merged, e)
			continue
		}
		switch {
		case e.ready == last.ready:
			last.zone = max(last.zone, e.zone)
		case e.ready:
			last.zone, last.ready = e.zone, true
		}
	}
	return merged
}

// blockBuilder makes blocks of hosts that come sorted.
type blockBuilder struct {
	ports    *portSets
	drafts   []draft
	numbers  map[Class]int // of the drafts
	last     int           // the number of the last draft that was used
	sets     []*PortSet    // of a host
	seen     addressSet
	count    int // of endpoints
	anyReady bool
}

// addressSet is a set of addresses.
type addressSet struct {
	v4 map[[4]byte]struct{}
	v6 map[[16]byte]struct{}
}

// newAddressSet has room for the addresses of the endpoints.
func newAddressSet(all []*object.Endpoints) addressSet {
	v4, v6 := 0, 0
	for _, e := range all {
		if e.Size == 4 {
			v4 += e.Len()
		} else {
			v6 += e.Len()
		}
	}
	return addressSet{make(map[[4]byte]struct{}, v4), make(map[[16]byte]struct{}, v6)}
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
	addrs []byte
	hosts []string
}

// addHost adds the endpoints of one host name, or one nameless address.
func (b *blockBuilder) addHost(host []endpoint) {
	usable := func(e *endpoint) bool { return e.ready || !b.anyReady }
	hostReady := false
	b.sets = b.sets[:0]
	for i := range host {
		hostReady = hostReady || host[i].ready
		if set := host[i].ports; set != nil && usable(&host[i]) {
			b.sets = append(b.sets, set)
		}
	}
	ports := b.ports.union(b.sets)
	host = mergeAddresses(host)
	isTarget := false
	for i := range host {
		e := &host[i]
		class := Class{
			Cluster:   e.cluster,
			Zone:      e.zone,
			Size:      uint8(e.addr.BitLen() / 8),
			Named:     e.host != "",
			InService: usable(e) && b.seen.add(e.addr),
			InHost:    e.cluster != "" && (e.ready || !hostReady),
			Target:    e.cluster != "" && usable(e) && !isTarget,
		}
		if class.Target {
			isTarget, class.Ports = true, ports
		}
		if class.InService || class.InHost {
			b.draft(class).add(e)
		}
	}
}

// draftRoom is how many addresses a draft has room for before it grows.
const draftRoom = 64

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
	room := min(b.count, draftRoom)
	d := draft{Class: class, addrs: make([]byte, 0, room*int(class.Size))}
	if class.Named {
		d.hosts = make([]string, 0, room)
	}
	b.drafts = append(b.drafts, d)
	return &b.drafts[b.last]
}

func (d *draft) add(e *endpoint) {
	d.addrs, _ = e.addr.AppendBinary(d.addrs)
	if d.Named {
		d.hosts = append(d.hosts, e.host)
	}
}

// blocks are the drafts, sorted and without spare capacity.
func (b *blockBuilder) blocks() []Block {
	if len(b.drafts) == 0 {
		return nil
	}
	blocks := make([]Block, len(b.drafts))
	for i, d := range b.drafts {
		blocks[i] = Block{Class: d.Class, addrs: append(make([]byte, 0, len(d.addrs)), d.addrs...)}
		if d.Named {
			blocks[i].hosts = object.PackHostnames(d.hosts)
		}
		var label [object.MaxLabel]byte
		for j := range blocks[i].Len() {
			blocks[i].HostOctets += len(blocks[i].AppendHost(label[:0], j))
		}
	}
	slices.SortStableFunc(blocks, func(a, b Block) int { return a.compare(&b.Class) })
	return blocks
}

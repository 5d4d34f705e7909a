// SPDX-License-Identifier: Apache-2.0

package index

import (
	"net/netip"
	"slices"
	"strings"
)

// endpoint is an address on its way into a run.
type endpoint struct {
	addr    netip.Addr
	host    string // empty where the address names the endpoint
	cluster string // empty where the endpoint has no host name
	zone    string // empty where it is not known
	ports   *portSet
	ready   bool
}

// sameHost tells whether two endpoints of a service have the same host name, or are the same nameless address.
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

// buildRuns sorts the endpoints of a headless service into runs.
//
// An endpoint is usable if it is ready. Where a name has no ready endpoint, those that are serving and terminating
// answer for it: this is decided for the service name, which SRV follows, and for each host name by itself.
func buildRuns(config *Config, imported *Import, from []*Slice, skips **Skips) []run {
	if imported.without.v4 || imported.without.v6 {
		from = slices.DeleteFunc(slices.Clone(from), func(s *Slice) bool { return !imported.has(s.size) })
	}
	ports := portSets{config: config, imported: imported}
	endpoints := collectEndpoints(&ports, from, skips)
	builder := runBuilder{
		ports:    &ports,
		seen:     newAddressSet(from),
		count:    len(endpoints),
		anyReady: slices.ContainsFunc(from, func(s *Slice) bool { return s.ready > 0 }),
	}
	order := sortedOrder(endpoints)
	host := make([]endpoint, 0, maxHostAddresses) // those of one host name, or one nameless address
	for len(order) > 0 {
		host = append(host[:0], endpoints[order[0]])
		for order = order[1:]; len(order) > 0 && endpoints[order[0]].sameHost(&host[0]); order = order[1:] {
			host = append(host, endpoints[order[0]])
		}
		builder.addHost(host)
	}
	return builder.runs()
}

// sortedOrder are the numbers of the endpoints as they would be sorted. Numbers are what moves while it sorts: endpoints
// are large and full of pointers.
func sortedOrder(endpoints []endpoint) []int32 {
	order := make([]int32, len(endpoints))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return compareEndpoints(&endpoints[a], &endpoints[b]) })
	return order
}

// collectEndpoints unpacks the slices, in an order that does not matter.
func collectEndpoints(sets *portSets, from []*Slice, skips **Skips) []endpoint {
	count := 0
	for _, s := range from {
		count += s.Len()
	}
	endpoints := make([]endpoint, 0, count)
	maxHost := maxName - len("..") - len(sets.imported.Key) - sets.config.maxSuffix()
	alike := make(map[hostKey]string) // the hostnames that are the label of another address of their cluster
	var hosts []string                // those of a slice
	for _, s := range from {
		mergeSkips(skips, s.skips)
		ports := sets.slice(s.ports)
		if ports.tooLong {
			skip(skips, NameTooLong)
		}
		hosts = s.appendHosts(hosts[:0])
		for i := range s.Len() {
			e := endpoint{
				addr:    addrOf(s.addrs[i*int(s.size) : (i+1)*int(s.size)]),
				cluster: s.cluster,
				zone:    s.zone(i),
				ports:   ports.set,
				ready:   i < int(s.ready),
			}
			var of netip.Addr // whose label the hostname is, where it is one
			if len(hosts) > 0 && hosts[i] != "" {
				e.host = hosts[i]
				of = parseHostLabel(e.host)
			}
			if !e.nameHost(of, maxHost) {
				skip(skips, NameTooLong)
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

// nameHost settles the endpoint's host name: no hostname where it is what the address gives anyway, and none at all
// without a cluster id, or where host and cluster id take more than maxHost octets; then it returns false. It is told
// whose label the hostname is, where it is that of an address.
func (e *endpoint) nameHost(of netip.Addr, maxHost int) bool {
	if e.cluster == "" || of == e.addr {
		e.host = ""
	}
	if e.cluster == "" || maxLabel+len(e.cluster) <= maxHost {
		return true // whatever the host is
	}
	length := len(e.host)
	if length == 0 {
		var label [maxLabel]byte
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

// nameAlike names an endpoint by a hostname if another endpoint of its cluster has the label of its address for a
// hostname: to DNS the two are one host.
func (e *endpoint) nameAlike(alike map[hostKey]string) {
	if e.host == "" {
		e.host = alike[hostKey{e.cluster, e.addr}]
	}
}

// portNameTooLong tells whether the name of the port's record would exceed what DNS can hold.
func portNameTooLong(config *Config, imported *Import, port Port) bool {
	return port.Name != "" &&
		len("_._.")+len(port.Name)+len(port.Protocol.String())+len(imported.Key)+config.maxSuffix() > maxName
}

// mergeAddresses makes one of the endpoints that have the same host name and address: such an endpoint was in several
// slices. They are sorted by address. Their ports are not merged.
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

// runBuilder makes runs of hosts that come sorted.
type runBuilder struct {
	ports    *portSets
	drafts   []draft
	numbers  map[runClass]int // of the drafts
	last     int              // the number of the last draft that was used
	sets     []*portSet       // those of a host
	seen     addressSet
	count    int // of endpoints
	anyReady bool
}

// addressSet is a set of addresses.
type addressSet struct {
	v4 map[[4]byte]struct{}
	v6 map[[16]byte]struct{}
}

// newAddressSet has room for the addresses of the slices.
func newAddressSet(from []*Slice) addressSet {
	v4, v6 := 0, 0
	for _, s := range from {
		if s.size == 4 {
			v4 += s.Len()
		} else {
			v6 += s.Len()
		}
	}
	return addressSet{make(map[[4]byte]struct{}, v4), make(map[[16]byte]struct{}, v6)}
}

// add adds an address and tells whether it was not in the set before.
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

// draft is a run in the making.
type draft struct {
	runClass
	addrs []byte
	hosts []string
}

// addHost adds the endpoints of one host name, or one nameless address.
func (b *runBuilder) addHost(host []endpoint) {
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
	led := false
	for i := range host {
		e := &host[i]
		class := runClass{
			cluster:   e.cluster,
			zone:      e.zone,
			size:      uint8(e.addr.BitLen() / 8),
			named:     e.host != "",
			inService: usable(e) && b.seen.add(e.addr),
			inHost:    e.cluster != "" && (e.ready || !hostReady),
			lead:      e.cluster != "" && usable(e) && !led,
		}
		if class.lead {
			led, class.ports = true, ports
		}
		if class.inService || class.inHost {
			b.draft(class).add(e)
		}
	}
}

// draftRoom is how many addresses a draft has room for before it grows.
const draftRoom = 64

// draft returns the draft of the class. Most hosts have that of the host before.
func (b *runBuilder) draft(class runClass) *draft {
	if b.last < len(b.drafts) && b.drafts[b.last].runClass == class {
		return &b.drafts[b.last]
	}
	if at, ok := b.numbers[class]; ok {
		b.last = at
		return &b.drafts[at]
	}
	if b.numbers == nil {
		b.numbers = make(map[runClass]int)
	}
	b.last = len(b.drafts)
	b.numbers[class] = b.last
	room := min(b.count, draftRoom)
	d := draft{runClass: class, addrs: make([]byte, 0, room*int(class.size))}
	if class.named {
		d.hosts = make([]string, 0, room)
	}
	b.drafts = append(b.drafts, d)
	return &b.drafts[len(b.drafts)-1]
}

func (d *draft) add(e *endpoint) {
	d.addrs = appendAddr(d.addrs, e.addr)
	if d.named {
		d.hosts = append(d.hosts, e.host)
	}
}

// runs are the drafts, sorted and without spare capacity.
func (b *runBuilder) runs() []run {
	if len(b.drafts) == 0 {
		return nil
	}
	runs := make([]run, len(b.drafts))
	for i, d := range b.drafts {
		runs[i] = run{runClass: d.runClass, addrs: append(make([]byte, 0, len(d.addrs)), d.addrs...)}
		if d.named {
			runs[i].setHosts(d.hosts)
		}
	}
	slices.SortStableFunc(runs, func(a, b run) int { return a.compare(&b.runClass) })
	return runs
}

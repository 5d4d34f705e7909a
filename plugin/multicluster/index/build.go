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
	ports   []Port
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
	endpoints := collectEndpoints(config, imported, from, skips)
	builder := runBuilder{
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
		builder.addHost(mergeAddresses(host))
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
func collectEndpoints(config *Config, imported *Import, from []*Slice, skips **Skips) []endpoint {
	count := 0
	for _, s := range from {
		count += s.Len()
	}
	endpoints := make([]endpoint, 0, count)
	maxHost := maxName - len("..") - len(imported.Key) - config.maxSuffix()
	var derived []endpoint // those with a hostname that is the label of an address
	var hosts []string     // those of a slice
	for _, s := range from {
		mergeSkips(skips, s.skips)
		ports := declaredPorts(config, imported, s.ports, skips)
		hosts = s.appendHosts(hosts[:0])
		for i := range s.Len() {
			e := endpoint{
				addr:    addrOf(s.addrs[i*int(s.size) : (i+1)*int(s.size)]),
				cluster: s.cluster,
				zone:    s.zone(i),
				ports:   ports,
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
				derived = append(derived, endpoint{addr: of, host: e.host, cluster: e.cluster})
			}
			endpoints = append(endpoints, e)
		}
	}
	nameAlike(endpoints, derived)
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

// nameAlike names endpoints by a hostname where another endpoint of their cluster has their address' label for a
// hostname: to DNS the two are one host.
func nameAlike(endpoints, derived []endpoint) {
	for _, d := range derived {
		for i := range endpoints {
			if e := &endpoints[i]; e.host == "" && e.addr == d.addr && e.cluster == d.cluster {
				e.host = d.host
			}
		}
	}
}

// declaredPorts are those of a slice's ports that the import declares and whose names fit.
func declaredPorts(config *Config, imported *Import, ports []Port, skips **Skips) []Port {
	declared := ports
	for i, port := range ports {
		if imported.declares(port) {
			continue
		}
		declared = slices.DeleteFunc(slices.Clone(ports[i:]), func(p Port) bool { return !imported.declares(p) })
		declared = append(ports[:i:i], declared...)
		break
	}
	for _, port := range declared {
		if portNameTooLong(config, imported, port) {
			skip(skips, NameTooLong)
			return slices.DeleteFunc(slices.Clone(declared), func(p Port) bool {
				return portNameTooLong(config, imported, p)
			})
		}
	}
	return declared
}

// portNameTooLong tells whether the name of the port's record would exceed what DNS can hold.
func portNameTooLong(config *Config, imported *Import, port Port) bool {
	return port.Name != "" &&
		len("_._.")+len(port.Name)+len(port.Protocol.String())+len(imported.Key)+config.maxSuffix() > maxName
}

// mergeAddresses makes one of the endpoints that have the same host name and address: such an endpoint was in several
// slices. They are sorted by address.
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
			last.ports, last.zone = unionPorts(last.ports, e.ports), max(last.zone, e.zone)
		case e.ready:
			last.ports, last.zone, last.ready = e.ports, e.zone, true
		}
	}
	return merged
}

// unionPorts merges two sets of ports and changes neither.
func unionPorts(a, b []Port) []Port {
	if len(b) == 0 || slices.Equal(a, b) {
		return a
	}
	if len(a) == 0 {
		return b
	}
	return normalPorts(slices.Concat(a, b))
}

// runBuilder makes runs of hosts that come sorted.
type runBuilder struct {
	drafts   []draft
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

// addHost adds the addresses of one host name, or one nameless address.
func (b *runBuilder) addHost(host []endpoint) {
	usable := func(e *endpoint) bool { return e.ready || !b.anyReady }
	hostReady := false
	var ports []Port
	for i := range host {
		hostReady = hostReady || host[i].ready
		if usable(&host[i]) {
			ports = unionPorts(ports, host[i].ports)
		}
	}
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

// draft returns the draft of the class. There are few.
func (b *runBuilder) draft(class runClass) *draft {
	for i := range b.drafts {
		if b.drafts[i].same(&class) {
			return &b.drafts[i]
		}
	}
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
	slices.SortFunc(runs, func(a, b run) int { return a.compare(b.runClass) })
	return runs
}

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
	endpoints := sortEndpoints(collectEndpoints(config, imported, from, skips))
	anyReady := slices.ContainsFunc(endpoints, func(e endpoint) bool { return e.ready })

	builder := runBuilder{seen: make(map[netip.Addr]struct{}, len(endpoints)), anyReady: anyReady}
	for len(endpoints) > 0 {
		end := 1
		for end < len(endpoints) && endpoints[end].sameHost(&endpoints[0]) {
			end++
		}
		builder.addHost(mergeAddresses(endpoints[:end]))
		endpoints = endpoints[end:]
	}
	return builder.runs()
}

// sortEndpoints returns a sorted copy. Numbers are what moves while it sorts: endpoints are large and full of pointers.
func sortEndpoints(endpoints []endpoint) []endpoint {
	order := make([]int32, len(endpoints))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return compareEndpoints(&endpoints[a], &endpoints[b]) })
	sorted := make([]endpoint, len(endpoints))
	for i, at := range order {
		sorted[i] = endpoints[at]
	}
	return sorted
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
	for _, s := range from {
		mergeSkips(skips, s.skips)
		ports := declaredPorts(config, imported, s.ports, skips)
		hosts := s.hostnames()
		for i := range s.Len() {
			e := endpoint{
				addr:    addrOf(s.addrs[i*int(s.size) : (i+1)*int(s.size)]),
				cluster: s.cluster,
				zone:    s.zone(i),
				ports:   ports,
				ready:   i < int(s.ready),
			}
			e.host = hosts.next()
			if !e.nameHost(maxHost) {
				skip(skips, NameTooLong)
			}
			if e.host != "" {
				if addr, ok := parseHostLabel(e.host); ok {
					derived = append(derived, endpoint{addr: addr, host: e.host, cluster: e.cluster})
				}
			}
			endpoints = append(endpoints, e)
		}
	}
	nameAlike(endpoints, derived)
	return endpoints
}

// nameHost settles the endpoint's host name: no hostname where it is what the address gives anyway, and none at all
// without a cluster id, or where host and cluster id take more than maxHost octets; then it returns false.
func (e *endpoint) nameHost(maxHost int) bool {
	if e.cluster == "" {
		e.host = ""
		return true
	}
	if e.host == "" && maxLabel+len(e.cluster) <= maxHost {
		return true // whatever the address is
	}
	var label [maxLabel]byte
	own := appendHostLabel(label[:0], e.addr)
	if e.host == string(own) {
		e.host = ""
	}
	length := len(e.host)
	if length == 0 {
		length = len(own)
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
	seen     map[netip.Addr]struct{}
	anyReady bool
}

// draft is a run in the making.
type draft struct {
	runClass
	addrs []byte
	hosts []string
}

// addHost adds the addresses of one host name, or one nameless address.
func (b *runBuilder) addHost(host []endpoint) {
	hostReady := slices.ContainsFunc(host, func(e endpoint) bool { return e.ready })
	usable := func(e *endpoint) bool { return e.ready || !b.anyReady }
	var ports []Port
	for i := range host {
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
			inService: usable(e) && b.first(e.addr),
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

// first tells whether the address was not seen before.
func (b *runBuilder) first(addr netip.Addr) bool {
	_, seen := b.seen[addr]
	b.seen[addr] = struct{}{}
	return !seen
}

// draft returns the draft of the class. There are few.
func (b *runBuilder) draft(class runClass) *draft {
	for i := range b.drafts {
		if b.drafts[i].same(&class) {
			return &b.drafts[i]
		}
	}
	b.drafts = append(b.drafts, draft{runClass: class})
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

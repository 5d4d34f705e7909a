// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"
	"slices"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/miekg/dns"
)

// nameServer returns the name of the name server of a zone. For a reverse zone, the name is in the first zone.
func (c *Config) nameServer(zone int) string {
	if c.IsReverse(zone) {
		zone = 0
	}
	return dnsutil.Join("ns.dns", c.Zones[zone])
}

// makeSOA makes the SOA records of all zones.
func makeSOA(config *Config, serial uint32) (soa [][]dns.RR) {
	for i, zone := range config.Zones {
		server := config.nameServer(i)
		soa = append(soa, []dns.RR{&dns.SOA{
			// The TTL limits how long resolvers remember that a name does not exist (RFC 2308, section 5).
			Hdr:     header(zone, dns.TypeSOA, min(config.TTL, 300)),
			Ns:      server,
			Mbox:    "hostmaster" + server[len("ns.dns"):],
			Serial:  serial,
			Refresh: 7200, // as in CoreDNS's kubernetes plugin, like 300 and the next two
			Retry:   1800,
			Expire:  86400,
			Minttl:  config.TTL,
		}})
	}
	return soa
}

// Apex has the records of a zone that do not belong to a service. All answers share the records, which never change;
// the slices have no spare capacity.
type Apex struct {
	version, ns []dns.RR
	address     []dns.RR // of the name server
}

// NewApex makes the apex records of the zone with this index, whose name server has these addresses.
func NewApex(config *Config, zone int, addresses []netip.Addr) Apex {
	server, origin := config.nameServer(zone), config.Zones[zone]
	z := Apex{ns: []dns.RR{&dns.NS{Hdr: header(origin, dns.TypeNS, config.TTL), Ns: server}}}
	if !config.IsReverse(zone) {
		// the version of the multicluster DNS specification, and its TTL (specification.md of KEP-1645)
		of := header(dnsutil.Join("dns-version", origin), dns.TypeTXT, 28800)
		z.version = []dns.RR{&dns.TXT{Hdr: of, Txt: []string{"1.0.0"}}}
	}
	out := newAddressList(len(addresses))
	for _, addr := range addresses {
		out.add(server, config.TTL, addr.AsSlice())
	}
	z.address = out.records
	return z
}

// Lookup answers for an apex name, like Service.Lookup. Apex names always exist. soa is the SOA record of the zone.
func (z *Apex) Lookup(q *Question, soa []dns.RR) Result {
	var records, extra []dns.RR
	switch name := q.Request.Apex; {
	case name == "" && q.Type == dns.TypeSOA:
		records = soa
	case name == "" && q.Type == dns.TypeNS:
		records, extra = z.ns, z.address
	case name == "dns-version" && q.Type == dns.TypeTXT:
		records = z.version
	case name == "ns.dns":
		other := func(rr dns.RR) bool { return rr.Header().Rrtype != q.Type }
		records = slices.Clip(slices.DeleteFunc(slices.Clone(z.address), other))
	}
	return q.reply(records, extra, false)
}

// Records returns all apex records of the zone except the SOA record.
func (z *Apex) Records() []dns.RR {
	if z.version == nil { // a reverse zone
		return z.ns
	}
	return slices.Concat(z.ns, z.address, z.version)
}

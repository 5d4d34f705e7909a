// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"net/netip"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/answer"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
)

// The version of the multicluster DNS specification, and how long it may be kept (specification.md beside KEP-1645).
const (
	specificationVersion = "1.0.0"
	versionTTL           = 28800
)

// apex are the records of a zone that are not of a service. They are shared by all answers and never changed; the
// slices have no spare capacity.
type apex struct {
	version []dns.RR
	ns      []dns.RR
	a, aaaa []dns.RR // of the name server
	address []dns.RR // a and aaaa
}

// newApex makes the records of a zone. Its server, of that name, has these addresses.
func newApex(zone, server string, ttl uint32, addresses []netip.Addr) apex {
	header := func(name string, rrtype uint16) dns.RR_Header {
		return dns.RR_Header{Name: name, Rrtype: rrtype, Class: dns.ClassINET, Ttl: ttl}
	}
	var z apex
	version := &dns.TXT{Hdr: header(index.Join("dns-version", zone), dns.TypeTXT), Txt: []string{specificationVersion}}
	version.Hdr.Ttl = versionTTL
	z.version = []dns.RR{version}
	z.ns = []dns.RR{&dns.NS{Hdr: header(zone, dns.TypeNS), Ns: server}}
	var a, aaaa []dns.RR
	for _, addr := range addresses {
		if addr.Is4() {
			a = append(a, &dns.A{Hdr: header(server, dns.TypeA), A: addr.AsSlice()})
		} else {
			aaaa = append(aaaa, &dns.AAAA{Hdr: header(server, dns.TypeAAAA), AAAA: addr.AsSlice()})
		}
	}
	z.address = make([]dns.RR, 0, len(a)+len(aaaa))
	z.address = append(append(z.address, a...), aaaa...)
	z.a, z.aaaa = z.address[:len(a):len(a)], z.address[len(a):]
	return z
}

// lookup answers for a name that is not of a service. It always exists.
func (z *apex) lookup(kind name.Kind, qtype uint16, soa []dns.RR) answer.Answer {
	var found, extra []dns.RR
	switch {
	case kind == name.Apex && qtype == dns.TypeSOA:
		found = soa
	case kind == name.Apex && qtype == dns.TypeNS:
		found, extra = z.ns, z.address
	case kind == name.Version && qtype == dns.TypeTXT:
		found = z.version
	case kind == name.NameServer && qtype == dns.TypeA:
		found = z.a
	case kind == name.NameServer && qtype == dns.TypeAAAA:
		found = z.aaaa
	}
	if len(found) == 0 {
		return answer.Answer{Result: answer.Empty}
	}
	return answer.Answer{Result: answer.Found, Answer: found, Extra: extra}
}

// newReverseApex makes those of a reverse zone, whose server is in another zone.
func newReverseApex(zone, server string, ttl uint32, addresses []netip.Addr) apex {
	z := newApex(zone, server, ttl, addresses)
	z.version = nil
	return z
}

// records are all of them in the zone but the SOA.
func (z *apex) records() []dns.RR {
	if z.version == nil { // a reverse zone
		return z.ns
	}
	records := make([]dns.RR, 0, len(z.ns)+len(z.address)+len(z.version))
	return append(append(append(records, z.ns...), z.address...), z.version...)
}

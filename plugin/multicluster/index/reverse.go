// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/answer"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// This file has the PTR records of clusterset IPs and of endpoints of headless services (multicluster DNS specification
// 1.0.0, sections 2.3.3 and 2.4.3). If reverse zones are served, a snapshot has a table from the octets of each address
// to its names, relative to the zone and sorted. The first name is answered, whatever the order of updates was.

// hostName is the name of a service or of one of its hosts, and one of its addresses.
type hostName struct{ addr, name string }

// hostNames are the names of a service that PTR records have, sorted by address: its own for the clusterset IPs, and
// those of its hosts in other clusters for the addresses that they resolve to. The local cluster's DNS has records for
// the endpoints of its own Services.
func hostNames(config *record.Config, s *record.Service) (hosts []hostName) {
	if s == nil || !s.Exists {
		return nil
	}
	for _, addr := range s.Import.Addrs {
		hosts = append(hosts, hostName{string(addr.AsSlice()), s.Key() + ".svc"})
	}
	for i := range s.Blocks {
		b := &s.Blocks[i]
		for j := 0; b.InHost && b.Cluster != config.Cluster && j < b.Len(); j++ {
			host := string(b.AppendHost(nil, j)) + "." + b.Cluster + "." + s.Key() + ".svc"
			hosts = append(hosts, hostName{string(b.Addr(j)), host})
		}
	}
	slices.SortFunc(hosts, compareHostNames)
	return hosts
}

func compareHostNames(a, b hostName) int {
	return cmp.Or(strings.Compare(a.addr, b.addr), strings.Compare(a.name, b.name))
}

// changeReverse replaces the hosts of one state of a service by those of the next. Either may be nil.
func (s *Snapshot) changeReverse(before, after *record.Service) {
	old, now := hostNames(s.config, before), hostNames(s.config, after)
	for len(old) > 0 || len(now) > 0 {
		var order int
		switch {
		case len(old) == 0:
			order = 1
		case len(now) == 0:
			order = -1
		default:
			order = compareHostNames(old[0], now[0])
		}
		if order < 0 {
			s.removeHost(old[0])
		}
		if order > 0 {
			s.addHost(now[0])
		}
		if order <= 0 {
			old = old[1:]
		}
		if order >= 0 {
			now = now[1:]
		}
	}
}

func (s *Snapshot) addHost(host hostName) {
	names, _ := s.reverse.get(host.addr)
	at, _ := slices.BinarySearch(names, host.name)
	s.reverse.put(host.addr, slices.Insert(slices.Clone(names), at, host.name))
}

func (s *Snapshot) removeHost(host hostName) {
	names, _ := s.reverse.get(host.addr)
	if len(names) == 1 {
		s.reverse.remove(host.addr)
		return
	}
	at, _ := slices.BinarySearch(names, host.name)
	s.reverse.put(host.addr, slices.Delete(slices.Clone(names), at, at+1))
}

// LookupReverse answers a question for a name below a reverse zone. It takes no lock. Names of parts of addresses
// exist, whatever is below them.
func (s *Snapshot) LookupReverse(qname string, qtype uint16) answer.Answer {
	addr, ok := name.Address(qname)
	if !ok {
		return answer.Answer{}
	}
	if !addr.IsValid() {
		return answer.Answer{Result: answer.Empty}
	}
	names, ok := s.reverse.get(string(addr.AsSlice()))
	switch {
	case !ok:
		return answer.Answer{}
	case qtype != dns.TypePTR:
		return answer.Answer{Result: answer.Empty}
	}
	return answer.Answer{Result: answer.Found, Answer: []dns.RR{s.pointer(qname, names)}}
}

// pointer is the PTR record of an address that has these names.
func (s *Snapshot) pointer(owner string, names []string) dns.RR {
	return &dns.PTR{
		Hdr: dns.RR_Header{Name: owner, Rrtype: dns.TypePTR, Class: dns.ClassINET, Ttl: s.config.TTL},
		Ptr: Join(names[0], s.config.Zones[0]),
	}
}

// WalkReverse yields the PTR records in the reverse zone with that number, sorted by address, until yield returns
// false.
func (s *Snapshot) WalkReverse(zone int, yield func([]dns.RR) bool) {
	for _, e := range s.reverse.sorted() {
		addr, _ := netip.AddrFromSlice([]byte(e.key))
		owner, err := dns.ReverseAddr(addr.String())
		if err != nil {
			continue // each address has one
		}
		if below, ok := name.Cut(owner, s.config.Reverse[zone-len(s.config.Zones)]); ok && below != "" {
			if !yield([]dns.RR{s.pointer(owner, e.value)}) {
				return
			}
		}
	}
}

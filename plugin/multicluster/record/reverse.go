// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
	"github.com/miekg/dns"
)

// This file has the PTR records of clusterset IPs and of endpoints of headless services (multicluster DNS specification
// 1.0.0, sections 2.3.3 and 2.4.3). If reverse zones are served, an index has the names of each address, relative to the
// zone and sorted. The first name is answered, whatever the order of updates was.

// hostName is the name of a service or of one of its hosts, and one of its addresses.
type hostName struct{ addr, name string }

// hostNames are the names of a service that PTR records have: its own for the clusterset IPs, and those of its hosts in
// other clusters for the addresses that they resolve to. The local cluster's DNS has records for the endpoints of its
// own Services.
func (s *Service) hostNames() map[hostName]struct{} {
	hosts := make(map[hostName]struct{})
	if !s.Exists {
		return hosts
	}
	service := s.Import.Key + ".svc"
	for _, addr := range s.Import.Addrs {
		hosts[hostName{string(addr.AsSlice()), service}] = struct{}{}
	}
	for i := range s.Blocks {
		b := &s.Blocks[i]
		for j := 0; b.InHost && b.Cluster != s.config.Cluster && j < b.Len(); j++ {
			host := string(b.AppendHost(nil, j)) + "." + b.Cluster + "." + service
			hosts[hostName{string(b.Addr(j)), host}] = struct{}{}
		}
	}
	return hosts
}

// changeReverse replaces the hosts of one state of a service by those of the next.
func (x *Index) changeReverse(before, after *Service) {
	old, now := before.hostNames(), after.hostNames()
	for host := range now {
		if _, had := old[host]; !had {
			names := x.reverse[host.addr]
			at, _ := slices.BinarySearch(names, host.name)
			set(x, x.reverse, host.addr, slices.Insert(slices.Clone(names), at, host.name), true)
		}
	}
	for host := range old {
		if _, has := now[host]; !has {
			names := slices.Clone(x.reverse[host.addr])
			at, _ := slices.BinarySearch(names, host.name)
			names = slices.Delete(names, at, at+1)
			set(x, x.reverse, host.addr, names, len(names) > 0)
		}
	}
}

// LookupReverse answers a question for a name below a reverse zone. Names of parts of addresses exist, whatever is below
// them.
func (x *Index) LookupReverse(q *Question) {
	addr, ok := reverseAddress(q.Name)
	if !ok {
		return
	}
	names := get(x, x.reverse, string(addr.AsSlice()))
	switch {
	case addr.IsValid() && len(names) == 0:
	case !addr.IsValid(), q.Type != dns.TypePTR:
		q.Answer.Result = Empty
	default:
		q.Answer.Result = q.reply(x.pointer(q.Name, names), nil, false)
	}
}

// reverseAddress returns the address whose reverse name this is, in any case. The name of a part of an address, as
// 0.10.in-addr.arpa. is, has the zero address; ok is false for names that are neither.
func reverseAddress(reverse string) (addr netip.Addr, ok bool) {
	reverse = strings.ToLower(reverse)
	labels := 4 + 2
	if dnsutil.IsReverse(reverse) == 2 {
		labels = 32 + 2
	}
	missing := labels - dns.CountLabel(reverse)
	if missing < 0 {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(dnsutil.ExtractAddressFromReverse(strings.Repeat("0.", missing) + reverse))
	if err != nil || missing > 0 {
		return netip.Addr{}, err == nil
	}
	return addr, true
}

// pointer is the PTR record of an address that has these names.
func (x *Index) pointer(owner string, names []string) []dns.RR {
	target := dnsutil.Join(names[0], x.config.Zones[0])
	return []dns.RR{&dns.PTR{Hdr: header(owner, dns.TypePTR, x.config.TTL), Ptr: target}}
}

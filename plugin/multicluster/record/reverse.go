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
// 1.0.0, sections 2.3.3 and 2.4.3). With reverse zones, an index has the names of each address, relative to the first
// zone and sorted. PTR returns the first name, so the answer does not depend on the order of updates.

// hostName is one address and one name that resolves to it: a service or a host.
type hostName struct{ addr, name string }

// hostNames returns the names of a service that PTR records have: the service name for the clusterset IPs, and the host
// names in other clusters for their addresses. Endpoints of the local cluster have PTR records in the local cluster's
// own DNS.
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

// changeReverse replaces the hosts of the old state of a service with the hosts of the new state.
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

// LookupReverse answers a question for a name below a reverse zone, like Service.Lookup. The name of a part of an address
// exists even if no address below it has a name.
func (x *Index) LookupReverse(q *Question) Result {
	addr, ok := reverseAddress(q.Name)
	names := get(x, x.reverse, string(addr.AsSlice()))
	switch {
	case !ok, addr.IsValid() && len(names) == 0:
		return NotExist
	case !addr.IsValid(), q.Type != dns.TypePTR:
		return Empty
	}
	return q.reply(x.pointer(q.Name, names), nil, false)
}

// reverseAddress returns the address of a reverse name; case does not matter. For the name of a part of an address,
// such as 0.10.in-addr.arpa., it returns the zero Addr. ok is false for all other names.
func reverseAddress(reverse string) (addr netip.Addr, ok bool) {
	reverse = strings.ToLower(reverse)
	labels, six := 4+2, dnsutil.IsReverse(reverse) == 2
	if six {
		labels = 32 + 2
	}
	missing := labels - dns.CountLabel(reverse)
	if missing < 0 {
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(dnsutil.ExtractAddressFromReverse(strings.Repeat("0.", missing) + reverse))
	if err != nil || addr.Is6() != six { // the text of an IPv4-mapped IPv6 address is that of the IPv4 address
		return netip.Addr{}, false
	}
	if missing > 0 {
		return netip.Addr{}, true
	}
	return addr, true
}

// pointer returns the PTR record of an address with these names.
func (x *Index) pointer(owner string, names []string) []dns.RR {
	target := dnsutil.Join(names[0], x.config.Zones[0])
	return []dns.RR{&dns.PTR{Hdr: header(owner, dns.TypePTR, x.config.TTL), Ptr: target}}
}

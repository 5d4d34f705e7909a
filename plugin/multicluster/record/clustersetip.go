// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"

	"github.com/miekg/dns"
)

// buildClusterSetIP packs the addresses, in a block per family, and the ports of a ClusterSetIP service.
func (s *Service) buildClusterSetIP() {
	s.Ports = newPortSet(s.fitting(s.Import.Ports))
	for _, addr := range s.Import.Addrs { // IPv4 before IPv6
		size := uint8(addr.BitLen() / 8)
		if last := len(s.Blocks) - 1; last < 0 || s.Blocks[last].Size != size {
			s.Blocks = append(s.Blocks, Block{Class: Class{Size: size, InService: true}})
		}
		b := &s.Blocks[len(s.Blocks)-1]
		b.addrs = append(b.addrs, addr.AsSlice()...)
	}
}

// services answers with the SRV records of the ports and the addresses of their target, if there are any.
func (s *Service) services(q *Question, ports []Port) Result {
	if len(s.Blocks) == 0 {
		return Empty
	}
	target, ttl := name(s.Import.Key, s.config.Zones[q.Zone]), s.config.TTL
	room, size := q.room(), sizeSRV+len(target)+1
	answer := make([]dns.RR, min(len(ports), max(0, room/size)))
	for i := range answer {
		of := header(q.Name, dns.TypeSRV, ttl)
		answer[i] = &dns.SRV{Hdr: of, Weight: usualWeight, Port: ports[i].Number, Target: target}
	}
	if len(answer) < len(ports) {
		return q.reply(answer, nil, true)
	}
	room -= len(answer) * size
	extra := newAddressList(min(len(s.Import.Addrs), max(0, room/addressSize(4))))
	for i := range s.Blocks {
		b := &s.Blocks[i]
		for j := 0; j < b.Len() && room >= addressSize(b.Size); j++ {
			room -= addressSize(b.Size)
			extra.add(target, ttl, b.Addr(j))
		}
	}
	return q.reply(answer, slices.Clip(extra.records), false)
}

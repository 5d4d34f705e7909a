// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// target is the target of SRV records: an endpoint and its host name.
type target struct {
	*Block
	entry int
	name  string
}

// targets answers with the SRV records of the ports with the label, and with the addresses of their targets.
func (s *Service) targets(q *Question, label string) Result {
	if !s.headless {
		return s.services(q, labeled(s.Ports.ports, label))
	}
	parts := s.parts(q, label)
	n := 0
	for i := range parts {
		n += parts[i].Len() * len(parts[i].ports)
	}
	if n == 0 {
		return Empty
	}
	limit, room := min(n, cmp.Or(q.Max, n)), q.room()
	service := name(s.Import.Key, s.config.Zones[q.Zone])
	least := len("0.0.") + len(service)
	most := max(0, min(limit, room/(sizeSRV+least+1)+1))
	records, answer, targets := make([]dns.SRV, 0, most), make([]dns.RR, 0, most), make([]target, 0, most)
	var host [maxLabel]byte
	each(parts, q.Client.Point, func(p *part, entry int) bool {
		if len(answer) == limit {
			return false
		}
		name := string(p.AppendHost(host[:0], entry)) + "." + p.Cluster + "." + service
		targets = append(targets, target{p.Block, entry, name})
		for _, port := range p.ports {
			size := sizeSRV + len(name) + 1
			if len(answer) == limit || room < size {
				return false
			}
			room -= size
			records = append(records, dns.SRV{
				Hdr: header(q.Name, dns.TypeSRV, s.config.TTL), Priority: p.priority, Weight: p.Weight, Port: port.Number, Target: name,
			})
			answer = append(answer, &records[len(records)-1])
		}
		return true
	})
	answer = slices.Clip(answer)
	if len(answer) < limit {
		return q.reply(answer, nil, true) // the client asks again over TCP
	}
	return q.reply(answer, s.extra(targets, q.Client.Size-room, room), false)
}

// maxLooks limits how many blocks extra searches for one answer. Only services in hundreds of clusters come near it.
const maxLooks = 1 << 16

// extra makes the address records of the targets, as many as fit after the used octets. Clients query the remaining
// addresses.
func (s *Service) extra(targets []target, used, room int) []dns.RR {
	looks := 0
	out := newAddressList(len(targets))
	add := func(owner string, addr []byte) {
		size := addressSize(uint8(len(addr)))
		if used > maxPointer {
			size += len(owner) + 1 - sizePointer // owners beyond the reach of a pointer are not compressed
		}
		if size <= room {
			room -= size
			out.add(owner, s.config.TTL, addr)
		}
	}
	for _, t := range targets {
		if room < addressSize(4) {
			break
		}
		if !t.Named { // the address gives the host name, which has no other address
			add(t.name, t.Addr(t.entry))
			continue
		}
		label := t.name[:strings.IndexByte(t.name, '.')]
		for i := range s.Blocks {
			b := &s.Blocks[i]
			if looks++; looks > maxLooks {
				return slices.Clip(out.records)
			}
			if !b.InHost || !b.Named || b.Cluster != t.Cluster {
				continue
			}
			for from, to := b.Find(label, netip.Addr{}); from < to; from++ {
				add(t.name, b.Addr(from))
			}
		}
	}
	return slices.Clip(out.records)
}

// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// services answers with the SRV records of the ports that are asked for, and with the addresses of their targets. The
// priorities are those of the blocks, or nil if no endpoint comes before another.
func (b answerBuilder) services(wanted object.PortName, priorities []uint16) Answer {
	s := serviceList{answerBuilder: b, priorities: priorities}
	s.collectNumbers(wanted)
	if s.n == 0 {
		return Answer{Result: Empty}
	}
	limit := b.limit(s.n)
	s.choose(limit, limit < s.n || s.octets > s.room())
	records, answer := s.records()
	if len(s.picks) < limit {
		return answerOf(answer, nil, true) // the client asks again over TCP
	}
	return answerOf(answer, s.extra(records), false)
}

// pick is an SRV record: an endpoint of a service and a port number.
type pick struct {
	block, entry int32
	number       uint16
	length       uint16 // of the target
}

// serviceList makes the SRV records of a headless service.
type serviceList struct {
	answerBuilder
	numbers [][]uint16 // the port numbers of each block
	n       int        // the number of records in all
	octets  int        // that they take
	blocks  []int32    // whose records are taken at present, or nil for all
	ends    ranks      // of these records
	looks   int        // how many blocks were searched for addresses

	priorities []uint16 // by the number of the block, or nil

	picks   []pick
	targets strings.Builder // of the picks, one behind the other
	left    int             // of the room, by the picks
}

// collectNumbers finds the port numbers of each block.
func (s *serviceList) collectNumbers(wanted object.PortName) {
	suffix := len(s.service.Import.Key) + len(record.Suffix(s.zone))
	blocks := s.service.Blocks
	s.numbers = make([][]uint16, len(blocks))
	for i := range blocks {
		b := &blocks[i]
		if !b.Target {
			continue
		}
		s.numbers[i] = b.Ports.Numbers(wanted)
		s.n += b.Len() * len(s.numbers[i])
		s.octets += (b.Len()*(sizeSRV+len("..")+len(b.Cluster)+suffix+1) + b.HostOctets) * len(s.numbers[i])
	}
}

// choose takes records up to the limit and up to what fits.
func (s *serviceList) choose(limit int, spread bool) {
	s.left = s.room()
	average := s.octets / s.n
	usual := max(0, min(limit, s.left/average+1))
	s.picks = make([]pick, 0, usual)
	s.targets.Grow(usual * (average - sizeSRV))
	if s.priorities != nil {
		s.takeByPriority(limit, spread)
	} else {
		s.take(nil, limit, s.n, spread)
	}
}

// take takes so many of the n records of some blocks, up to what fits, and reports whether it took all of them. Nil are
// all blocks.
func (s *serviceList) take(blocks []int32, count, n int, spread bool) bool {
	s.blocks = blocks
	s.ends = newRanks(s.ends[:0], len(s.numbers))
	if blocks == nil {
		for i, numbers := range s.numbers {
			s.ends.add(s.service.Blocks[i].Len() * len(numbers))
		}
	}
	for _, i := range blocks {
		s.ends.add(s.service.Blocks[i].Len() * len(s.numbers[i]))
	}
	var label [object.MaxLabel]byte
	var buffer [256]byte // more than any name has
	tail := append(append(buffer[:0], '.'), s.service.Import.Key...)
	tail = append(tail, record.Suffix(s.zone)...)
	w := newWindow(n, spread, s.client.Point)
	for range count {
		p := s.locate(w.next())
		b := &s.service.Blocks[p.block]
		start := s.targets.Len()
		s.targets.Write(b.AppendHost(label[:0], int(p.entry)))
		s.targets.WriteByte('.')
		s.targets.WriteString(b.Cluster)
		s.targets.Write(tail)
		p.length = uint16(s.targets.Len() - start)
		size := sizeSRV + int(p.length) + 1
		if size > s.left {
			return false
		}
		s.left -= size
		s.picks = append(s.picks, p)
	}
	return true
}

// locate finds the record with that number.
func (s *serviceList) locate(at int) pick {
	i, at := s.ends.find(at)
	if s.blocks != nil {
		i = int(s.blocks[i])
	}
	numbers := s.numbers[i]
	if len(numbers) == 1 {
		return pick{block: int32(i), entry: int32(at), number: numbers[0]}
	}
	return pick{block: int32(i), entry: int32(at / len(numbers)), number: numbers[at%len(numbers)]}
}

// records makes the records that were chosen.
func (s *serviceList) records() (records []dns.SRV, answer []dns.RR) {
	names := s.targets.String()
	records = make([]dns.SRV, len(s.picks))
	answer = make([]dns.RR, len(s.picks))
	start := 0
	for i, p := range s.picks {
		end := start + int(p.length)
		answer[i] = record.SetSRV(&records[i], s.owner, s.ttl, names[start:end], p.number)
		records[i].Weight = s.service.Blocks[p.block].Weight
		if s.priorities != nil {
			records[i].Priority = s.priorities[p.block]
		}
		start = end
	}
	return records, answer
}

// extraPick is an address of the target of a record.
type extraPick struct{ block, entry, record int32 }

// extra makes the address records of the targets, as many as fit. Clients ask for the others.
func (s *serviceList) extra(records []dns.SRV) []dns.RR {
	picks := make([]extraPick, 0, min(len(records), max(0, s.left)/sizeA))
	offset := sizeHeader + len(s.owner) + 1 + 4 // of the record
	var seen map[[2]int32]struct{}
	a := 0
	for i, p := range s.picks {
		if s.left < sizeA {
			break
		}
		owner := 0 // what the owner takes beyond a pointer
		if offset+sizeSRV > maxPointer {
			owner = len(records[i].Target) + 1 - sizePointer
		}
		offset += sizeSRV + len(records[i].Target) + 1
		if len(s.numbers[p.block]) > 1 { // other records may have the same target
			if seen == nil {
				seen = make(map[[2]int32]struct{})
			}
			if _, twice := seen[[2]int32{p.block, p.entry}]; twice {
				continue
			}
			seen[[2]int32{p.block, p.entry}] = struct{}{}
		}
		s.eachAddress(p, func(block, entry int) {
			size := s.service.Blocks[block].Size
			if need := owner + addressSize(size); need <= s.left {
				s.left -= need
				picks = append(picks, extraPick{int32(block), int32(entry), int32(i)})
				if size == 4 {
					a++
				}
			}
		})
	}
	return s.extraRecords(records, picks, a)
}

// extraRecords makes the records of the picks, a of which are A records.
func (s *serviceList) extraRecords(records []dns.SRV, picks []extraPick, a int) []dns.RR {
	if len(picks) == 0 {
		return nil
	}
	extra := make([]dns.RR, len(picks))
	as, aaaas := make([]dns.A, a), make([]dns.AAAA, len(picks)-a)
	for i, p := range picks {
		b := &s.service.Blocks[p.block]
		owner := records[p.record].Target
		if b.Size == 4 {
			extra[i], as = record.SetA(&as[0], owner, s.ttl, b.Addr(int(p.entry))), as[1:]
		} else {
			extra[i], aaaas = record.SetAAAA(&aaaas[0], owner, s.ttl, b.Addr(int(p.entry))), aaaas[1:]
		}
	}
	return extra
}

// maxLooks is in how many blocks additional addresses are searched for one answer. Only services of many clusters with
// many ports or zones come near it.
const maxLooks = 1 << 14

// eachAddress yields the addresses of the target.
func (s *serviceList) eachAddress(p pick, yield func(block, entry int)) {
	target := &s.service.Blocks[p.block]
	if !target.Named { // the address names the target, and no other address has that name
		yield(int(p.block), int(p.entry))
		return
	}
	label := ""
	for _, size := range [...]uint8{4, 16} {
		start, end := s.service.ClusterBlocks(size, target.Cluster)
		if s.looks += end - start; s.looks > maxLooks {
			return
		}
		for i := start; i < end; i++ {
			b := &s.service.Blocks[i]
			if !b.InHost || !b.Named {
				continue
			}
			if i == int(p.block) { // of the addresses of a target one is in such a block
				yield(i, int(p.entry))
				continue
			}
			if label == "" {
				label = string(target.AppendHost(nil, int(p.entry)))
			}
			for from, to := b.Find(label, netip.Addr{}); from < to; from++ {
				yield(i, from)
			}
		}
	}
}

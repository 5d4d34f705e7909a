// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// services answers with the SRV records of the ports that are asked for, and with the addresses of
// their targets. It tells which part of them it has, and how many octets of the room they take. tiers are those of the
// runs, the nearest the lowest, and nil where there are none.
func (b answerBuilder) services(wanted object.PortName, tiers []uint16) (Answer, part, int) {
	s := serviceList{answerBuilder: b, tiers: tiers}
	s.measure(wanted)
	if s.n == 0 {
		return Answer{Result: Empty}, whole, 0
	}
	limit := b.limit(s.n)
	// Where it is plain that not all fit, those that do are spread over all.
	spread := limit < s.n || s.n*s.minSize > b.room() || s.least() > b.room()
	if !s.choose(limit, spread) && !spread {
		s.choose(limit, true)
	}
	records, answer := s.records()
	if len(s.picks) < limit {
		return answerOf(answer, nil, true), some, s.room() - s.left // who sees that it is cut asks again, over TCP
	}
	extra := s.extra(records)
	octets := s.room() - s.left
	switch {
	case limit < s.n:
		return answerOf(answer, extra, false), some, octets
	case s.cut:
		return answerOf(answer, extra, false), complete, octets
	default:
		return answerOf(answer, extra, false), whole, octets
	}
}

// serviceList makes the SRV records of a headless service.
type serviceList struct {
	answerBuilder
	// numbers are the port numbers of each run, and n is the number of records in all.
	numbers [][]uint16
	n       int
	ends    ranks    // of the records that are taken at present
	looks   int      // how many runs were searched for addresses
	tiers   []uint16 // by the number of the run, or nil
	// minSize is what the smallest record takes at least, in octets.
	minSize int
	// suffix follows the cluster id in each target.
	suffix int

	picks  []pick
	octets int  // of the targets' text
	left   int  // of the room, by the picks
	cut    bool // an additional record did not fit
}

// measure finds the port numbers of each run.
func (s *serviceList) measure(wanted object.PortName) {
	blocks := s.service.Blocks
	s.suffix = len(s.service.Import.Key) + len(record.Suffix(s.zone))
	s.numbers = make([][]uint16, len(blocks))
	s.minSize = 1 << 30
	for i := range blocks {
		b := &blocks[i]
		if !b.Target {
			continue
		}
		numbers := b.Ports.Numbers(wanted)
		if len(numbers) == 0 {
			continue
		}
		s.numbers[i] = numbers
		s.n += b.Len() * len(numbers)
		s.minSize = min(s.minSize, sizeSRV+1+len(b.Cluster)+sizeSuffix+s.suffix+1)
	}
}

// least is how many octets all records take at least: exactly so many, but for those of IPv6 addresses, whose labels are
// not so quickly measured.
func (s *serviceList) least() int {
	octets := 0
	for i, numbers := range s.numbers {
		b := &s.service.Blocks[i]
		octets += len(numbers) * (b.Len()*(sizeSRV+sizeSuffix+len(b.Cluster)+s.suffix+1) + b.MinHosts())
	}
	return octets
}

// choose takes records up to the limit and up to what fits, and returns whether the limit was reached.
func (s *serviceList) choose(limit int, spread bool) bool {
	s.left = s.room()
	s.octets = 0
	s.picks = make([]pick, 0, max(0, min(limit, s.left/s.minSize)))
	if s.tiers != nil {
		return s.takeByTier(limit, spread)
	}
	return s.take(limit, s.n, spread)
}

// take takes so many of the n records that have numbers, up to what fits, and returns whether it took all of them.
func (s *serviceList) take(count, n int, spread bool) bool {
	s.ends = newRanks(s.ends[:0], len(s.numbers))
	for i, numbers := range s.numbers {
		s.ends.add(s.service.Blocks[i].Len() * len(numbers))
	}
	w := newWindow(n, spread, s.client.Point)
	for range count {
		p := s.locate(w.next())
		target := s.targetLen(p)
		if sizeSRV+target+1 > s.left {
			return false
		}
		s.left -= sizeSRV + target + 1
		s.octets += target
		p.length = uint16(target)
		s.picks = append(s.picks, p)
	}
	return true
}

// locate finds the record with that number.
func (s *serviceList) locate(at int) pick {
	i, at := s.ends.find(at)
	numbers := s.numbers[i]
	if len(numbers) == 1 {
		return pick{block: int32(i), entry: int32(at), number: numbers[0]}
	}
	return pick{block: int32(i), entry: int32(at / len(numbers)), number: numbers[at%len(numbers)]}
}

// targetLen is the length of the pick's target.
func (s *serviceList) targetLen(p pick) int {
	b := &s.service.Blocks[p.block]
	return b.HostLen(int(p.entry)) + sizeSuffix + len(b.Cluster) + s.suffix
}

// records makes the records that were chosen.
func (s *serviceList) records() (records []dns.SRV, answer []dns.RR) {
	var text strings.Builder
	text.Grow(s.octets)
	var label [object.MaxLabel]byte
	var buffer [256]byte                                             // more than any name has
	tail := append(append(buffer[:0], '.'), s.service.Import.Key...) // what follows the cluster
	tail = append(tail, record.Suffix(s.zone)...)
	for _, p := range s.picks {
		b := &s.service.Blocks[p.block]
		text.Write(b.AppendHost(label[:0], int(p.entry)))
		text.WriteByte('.')
		text.WriteString(b.Cluster)
		text.Write(tail)
	}
	names := text.String()
	records = make([]dns.SRV, len(s.picks))
	answer = make([]dns.RR, len(s.picks))
	start := 0
	for i, p := range s.picks {
		end := start + int(p.length)
		record.SetSRV(&records[i], s.owner, s.ttl, names[start:end], p.number)
		if s.tiers != nil {
			records[i].Priority = s.tiers[p.block]
		}
		answer[i] = &records[i]
		start = end
	}
	return records, answer
}

// extraPick is an address of the target of a record.
type extraPick struct{ block, entry, record int32 }

// extra makes the address records of the targets, as many as fit. They are no loss where they do not: who needs them
// asks for them.
func (s *serviceList) extra(records []dns.SRV) []dns.RR {
	picks := make([]extraPick, 0, min(len(records), max(0, s.left)/sizeA))
	offset := sizeHeader + len(s.owner) + 1 + 4 // of the record
	var seen map[[2]int32]struct{}
	a := 0
	for i, p := range s.picks {
		if s.left < sizeA {
			s.cut = true
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
			} else {
				s.cut = true
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

// maxLooks is in how many runs additional addresses are searched for one answer. Only services of many clusters with
// many ports or zones come near it.
const maxLooks = 1 << 14

// eachAddress yields the addresses of the target.
func (s *serviceList) eachAddress(p pick, yield func(block, entry int)) {
	lead := &s.service.Blocks[p.block]
	if !lead.Named { // the address names the target, and no other address has that name
		yield(int(p.block), int(p.entry))
		return
	}
	label := ""
	for _, size := range [...]uint8{4, 16} {
		start, end := s.service.ClusterBlocks(size, lead.Cluster)
		if s.looks += end - start; s.looks > maxLooks {
			s.cut = true
			return
		}
		for i := start; i < end; i++ {
			b := &s.service.Blocks[i]
			if !b.InHost || !b.Named {
				continue
			}
			if i == int(p.block) { // one address of the target leads, so that this run has no other
				yield(i, int(p.entry))
				continue
			}
			if label == "" {
				label = string(lead.AppendHost(nil, int(p.entry)))
			}
			for from, to := b.Find(label, netip.Addr{}); from < to; from++ {
				yield(i, from)
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package index

import (
	"net/netip"
	"strings"

	"github.com/miekg/dns"
)

// services answers with the SRV records of the ports that are asked for, and with the addresses of
// their targets. It tells which part of them it has, and how many octets of the room they take. tiers are those of the
// runs, the nearest the lowest, and nil where there are none.
func (b answerBuilder) services(wanted portName, tiers []uint16) (Answer, part, int) {
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
func (s *serviceList) measure(wanted portName) {
	runs := s.service.runs
	s.suffix = len(s.service.imported.Key) + len(serviceSuffix(s.zone))
	s.numbers = make([][]uint16, len(runs))
	s.minSize = 1 << 30
	for i := range runs {
		r := &runs[i]
		if !r.lead {
			continue
		}
		numbers := r.ports.of(wanted)
		if len(numbers) == 0 {
			continue
		}
		s.numbers[i] = numbers
		s.n += r.len() * len(numbers)
		s.minSize = min(s.minSize, sizeSRV+1+len(r.cluster)+sizeSuffix+s.suffix+1)
	}
}

// least is how many octets all records take at least: exactly so many, but for those of IPv6 addresses, whose labels are
// not so quickly measured.
func (s *serviceList) least() int {
	octets := 0
	for i, numbers := range s.numbers {
		r := &s.service.runs[i]
		octets += len(numbers) * (r.len()*(sizeSRV+sizeSuffix+len(r.cluster)+s.suffix+1) + r.leastHosts())
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
		s.ends.add(s.service.runs[i].len() * len(numbers))
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
		return pick{run: int32(i), entry: int32(at), number: numbers[0]}
	}
	return pick{run: int32(i), entry: int32(at / len(numbers)), number: numbers[at%len(numbers)]}
}

// targetLen is the length of the pick's target.
func (s *serviceList) targetLen(p pick) int {
	r := &s.service.runs[p.run]
	return r.hostLen(int(p.entry)) + sizeSuffix + len(r.cluster) + s.suffix
}

// records makes the records that were chosen.
func (s *serviceList) records() (records []dns.SRV, answer []dns.RR) {
	var text strings.Builder
	text.Grow(s.octets)
	var label [maxLabel]byte
	var buffer [maxName + 1]byte
	tail := append(append(buffer[:0], '.'), s.service.imported.Key...) // what follows the cluster
	tail = append(tail, serviceSuffix(s.zone)...)
	for _, p := range s.picks {
		r := &s.service.runs[p.run]
		text.Write(r.appendHost(label[:0], int(p.entry)))
		text.WriteByte('.')
		text.WriteString(r.cluster)
		text.Write(tail)
	}
	names := text.String()
	records = make([]dns.SRV, len(s.picks))
	answer = make([]dns.RR, len(s.picks))
	start := 0
	for i, p := range s.picks {
		end := start + int(p.length)
		setSRV(&records[i], s.owner, s.ttl, names[start:end], p.number)
		if s.tiers != nil {
			records[i].Priority = s.tiers[p.run]
		}
		answer[i] = &records[i]
		start = end
	}
	return records, answer
}

// extraPick is an address of the target of a record.
type extraPick struct{ run, entry, record int32 }

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
		if len(s.numbers[p.run]) > 1 { // other records may have the same target
			if seen == nil {
				seen = make(map[[2]int32]struct{})
			}
			if _, twice := seen[[2]int32{p.run, p.entry}]; twice {
				continue
			}
			seen[[2]int32{p.run, p.entry}] = struct{}{}
		}
		s.eachAddress(p, func(run, entry int) {
			size := s.service.runs[run].size
			if need := owner + addressSize(size); need <= s.left {
				s.left -= need
				picks = append(picks, extraPick{int32(run), int32(entry), int32(i)})
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
		r := &s.service.runs[p.run]
		owner := records[p.record].Target
		if r.size == 4 {
			extra[i], as = setA(&as[0], owner, s.ttl, r.addr(int(p.entry))), as[1:]
		} else {
			extra[i], aaaas = setAAAA(&aaaas[0], owner, s.ttl, r.addr(int(p.entry))), aaaas[1:]
		}
	}
	return extra
}

// maxLooks is in how many runs additional addresses are searched for one answer. Only services of many clusters with
// many ports or zones come near it.
const maxLooks = 1 << 14

// eachAddress yields the addresses of the target.
func (s *serviceList) eachAddress(p pick, yield func(run, entry int)) {
	lead := &s.service.runs[p.run]
	if !lead.named { // the address names the target, and no other address has that name
		yield(int(p.run), int(p.entry))
		return
	}
	label := ""
	for _, size := range [...]uint8{4, 16} {
		start, end := s.service.clusterRuns(size, lead.cluster)
		if s.looks += end - start; s.looks > maxLooks {
			s.cut = true
			return
		}
		for i := start; i < end; i++ {
			r := &s.service.runs[i]
			if !r.inHost || !r.named {
				continue
			}
			if i == int(p.run) { // one address of the target leads, so that this run has no other
				yield(i, int(p.entry))
				continue
			}
			if label == "" {
				label = lead.prefix + lead.suffix(int(p.entry))
			}
			for from, to := r.find(label, netip.Addr{}); from < to; from++ {
				yield(i, from)
			}
		}
	}
}

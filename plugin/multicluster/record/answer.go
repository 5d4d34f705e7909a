// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"

	"github.com/miekg/dns"
)

// Question is a question for a service.
type Question struct {
	// Name is the queried name as received. It is the owner of records that are made for the answer.
	Name string
	// Request is the parsed name, relative to the zone with the index Zone.
	Request Request
	Zone    int
	Type    uint16
	// Prefer is the preference for services that set none.
	Prefer Preference
	// Max is the greatest number of records in the answer, or 0 for all that fit.
	Max int
	// Client is used only if the service limits its answer.
	Client Client
	// Answer is the result of a lookup. It is a field because a return value would take stack in each function.
	Answer Answer
}

// Client describes what fits into the client's message and where the client is.
type Client struct {
	// Size is the number of octets available for the message, excluding the OPT record.
	Size int
	// Point selects the records if not all fit. Clients with many different points get all records equally often.
	Point uint64
	// Zone is the topology zone of the client, empty if unknown.
	Zone string
}

// Result says what exists at a name.
type Result uint8

const (
	// NotExist is NXDOMAIN: there is no such name.
	NotExist Result = iota
	// Empty is NODATA: the name has no records of that type, or only names below it have records.
	Empty
	// Found is at least one record.
	Found
)

// Answer has the records for a question. They may be shared with other answers and must not be changed. Its slices have
// no spare capacity.
type Answer struct {
	Result    Result
	Answer    []dns.RR
	Extra     []dns.RR
	Truncated bool
}

// Limits reports whether the service may have more records than a client accepts.
func (s *Service) Limits(q *Question) bool {
	return s.limits || q.Type == dns.TypeSRV
}

// Lookup answers a question for a name of the service, except for the result, which it returns.
func (s *Service) Lookup(q *Question) Result {
	switch kind := q.Request.Kind; {
	case !s.Exists:
	case kind == KindService:
		return s.lookupService(q)
	case kind == KindPort, kind == KindProtocol:
		switch {
		case !s.hasPort(q.Request.Prefix):
		case kind == KindPort && q.Type == dns.TypeSRV:
			return s.targets(q, q.Request.Prefix)
		default:
			return Empty
		}
	case !s.headless:
	case kind == KindTopologyZone:
		return s.lookupTopologyZone(q)
	case kind == KindHost:
		return s.lookupHost(q)
	case kind == KindCluster:
		return s.lookupCluster(q.Request.Prefix)
	}
	return NotExist
}

// lookupService answers for the service name or, with a topology zone, for the endpoints in that zone.
func (s *Service) lookupService(q *Question) Result {
	switch {
	case q.Type == dns.TypeSRV:
		return s.targets(q, "")
	case s.headless:
		return s.nearest(q)
	}
	for i := range s.Blocks {
		if b := &s.Blocks[i]; q.asksFor(b.Size) {
			return s.addresses(q, b.Size, b.Len(), b.Addr)
		}
	}
	return Empty
}

// hasPort reports whether the service, or a target of its SRV records, has the port or a port of the protocol.
func (s *Service) hasPort(label string) bool {
	if !s.headless {
		return s.Ports.has(label)
	}
	return slices.ContainsFunc(s.Blocks, func(b Block) bool { return b.Target && b.Ports.has(label) })
}

// Octets of records whose owner is compressed to a pointer (RFC 1035, section 4.1.4). The target of an SRV record is
// never compressed (RFC 2782).
const (
	sizeHeader  = 12 // of a message
	sizePointer = 2
	sizeFixed   = sizePointer + 10 // type, class, TTL, length of the data
	sizeSRV     = sizeFixed + 6    // excluding the target
	maxPointer  = 1<<14 - 1        // greatest offset that a pointer can hold
)

// addressSize returns the size of an address record for an address of this many octets.
func addressSize(octets uint8) int { return sizeFixed + int(octets) }

// room returns how many octets the client has for records after the question.
func (q *Question) room() int {
	return q.Client.Size - sizeHeader - (len(q.Name) + 1) - 4 // type and class
}

// reply answers with these records, which have no spare capacity.
func (q *Question) reply(answer, extra []dns.RR, truncated bool) Result {
	if len(answer) == 0 && !truncated {
		return Empty
	}
	q.Answer.Answer, q.Answer.Extra, q.Answer.Truncated = answer, extra, truncated
	return Found
}

// maxAlways is the number of address records that fit into any message.
const maxAlways = 4

// asksFor reports whether the question is for addresses of this many octets.
func (q *Question) asksFor(size uint8) bool {
	return q.Type == dns.TypeA && size == 4 || q.Type == dns.TypeAAAA && size == 16
}

// addresses answers with as many of n addresses of this many octets as fit, from the client's point on.
func (s *Service) addresses(q *Question, size uint8, n int, addr func(int) []byte) Result {
	count := n
	if count > maxAlways {
		count = max(0, min(count, q.room()/addressSize(size)))
	}
	out, start := newAddressList(count), int(q.Client.Point%uint64(n))
	for i := range count {
		out.add(q.Name, s.config.TTL, addr((start+i)%n))
	}
	return q.reply(out.records, nil, count < n)
}

// addressList makes address records. It allocates the records of a family in one piece if there are no more than
// expected.
type addressList struct {
	records []dns.RR
	a       []dns.A // to be filled in
	aaaa    []dns.AAAA
}

func newAddressList(expected int) addressList {
	return addressList{records: make([]dns.RR, 0, expected)}
}

// add adds a record for an address in network order. The record refers to addr, which must never change.
func (l *addressList) add(owner string, ttl uint32, addr []byte) {
	more := max(1, cap(l.records)-len(l.records))
	if len(addr) == 4 {
		if len(l.a) == 0 {
			l.a = make([]dns.A, more)
		}
		a := &l.a[0]
		a.Hdr, a.A = header(owner, dns.TypeA, ttl), addr
		l.records, l.a = append(l.records, a), l.a[1:]
		return
	}
	if len(l.aaaa) == 0 {
		l.aaaa = make([]dns.AAAA, more)
	}
	aaaa := &l.aaaa[0]
	aaaa.Hdr, aaaa.AAAA = header(owner, dns.TypeAAAA, ttl), addr
	l.records, l.aaaa = append(l.records, aaaa), l.aaaa[1:]
}

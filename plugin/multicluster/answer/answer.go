// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"math"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

// Octets of records whose owner is compressed to a pointer (RFC 1035, section 4.1.4). The target of an SRV record is
// never compressed (RFC 2782).
const (
	sizePointer = 2
	sizeFixed   = sizePointer + 10 // type, class, TTL, length of the data
	sizeA       = sizeFixed + 4
	sizeAAAA    = sizeFixed + 16
	sizeSRV     = sizeFixed + 6 // and the target
	maxPointer  = 1<<14 - 1     // what a pointer can point to
	sizeHeader  = 12            // of a message
)

// addressSize is the size of the record of an address of that many octets.
func addressSize(octets uint8) int { return sizeFixed + int(octets) }

// room is how many octets a client has for records behind a question of that name.
func (c Client) room(name string) int {
	return c.Size - c.Reserved - sizeHeader - (len(name) + 1) - 4 // type and class
}

// answerOf is the answer with these records, which have no spare capacity.
func answerOf(answer, extra []dns.RR, truncated bool) Answer {
	if len(answer) == 0 && !truncated {
		return Answer{Result: Empty}
	}
	return Answer{Result: Found, Answer: answer, Extra: extra, Truncated: truncated}
}

// maxAlways is how many address records fit into any message.
const maxAlways = 4

// prebuilt answers with records made before: as many as fit, and as many of the extra ones.
func (q *Question) prebuilt(answer, extra []dns.RR, client func() Client) Answer {
	if len(answer) == 0 {
		return Answer{Result: Empty}
	}
	if len(answer) <= maxAlways && q.Type != dns.TypeSRV {
		return Answer{Result: Found, Answer: answer}
	}
	room := client().room(q.Name)
	if answer[0].Header().Name != q.Name {
		room -= len(answer[0].Header().Name) + 1 - sizePointer // its first occurrence is not the question's
	}
	fits := 0
	for ; fits < len(answer); fits++ {
		size := recordSize(answer[fits])
		if room < size {
			return Answer{Result: Found, Answer: answer[:fits:fits], Truncated: true}
		}
		room -= size
	}
	fits = 0
	for ; fits < len(extra); fits++ {
		size := recordSize(extra[fits])
		if room < size {
			break
		}
		room -= size
	}
	return Answer{Result: Found, Answer: answer, Extra: extra[:fits:fits]}
}

// recordSize is the size of a record in a message that has its owner before.
func recordSize(rr dns.RR) int {
	switch rr := rr.(type) {
	case *dns.A:
		return sizeA
	case *dns.AAAA:
		return sizeAAAA
	case *dns.SRV:
		return sizeSRV + len(rr.Target) + 1
	default:
		return sizeFixed - sizePointer + dns.Len(rr)
	}
}

// span is the rooms, in octets, for which an answer is the same. The zero value is none but the client's.
type span struct{ min, max int }

// pick is an endpoint of a service, and for SRV records a port number.
type pick struct {
	block, entry int32
	number       uint16
	length       uint16 // of the target
}

// answerBuilder makes the records of an answer of a headless service. It holds no pointer to the question, which thus
// stays on the stack.
type answerBuilder struct {
	service *record.Service
	owner   string
	zone    string
	ttl     uint32
	max     int
	client  Client
}

func (s headless) builder(q *Question, client Client) answerBuilder {
	return answerBuilder{
		service: s.Service,
		owner:   q.Name,
		zone:    s.config.Zones[q.Zone],
		ttl:     s.config.TTL,
		max:     q.Max,
		client:  client,
	}
}

// room is how many octets there are for records.
func (b *answerBuilder) room() int { return b.client.room(b.owner) }

// limit is how many of n records may be taken.
func (b *answerBuilder) limit(n int) int {
	if b.max > 0 {
		return min(n, b.max)
	}
	return n
}

// addresses answers with the addresses of the service name that have that many octets.
func (b answerBuilder) addresses(size uint8) (Answer, span) {
	n := 0
	blocks := b.service.Blocks
	for i := range blocks {
		if block := &blocks[i]; block.InService && block.Size == size {
			n += block.Len()
		}
	}
	if n == 0 {
		return Answer{Result: Empty}, span{}
	}
	limit := b.limit(n)
	count := max(0, min(limit, b.room()/addressSize(size)))
	out := newAddressList(count, size, b.owner, b.ttl)
	if count == n {
		for i := range blocks {
			if block := &blocks[i]; block.InService && block.Size == size {
				for j := range block.Len() {
					out.add(block.Addr(j))
				}
			}
		}
	} else {
		var few [fewBlocks]int
		ends := newRanks(few[:0], len(blocks))
		for i := range blocks {
			if block := &blocks[i]; block.InService && block.Size == size {
				ends.add(block.Len())
			} else {
				ends.add(0)
			}
		}
		w := newWindow(n, true, b.client.Point)
		for range count {
			i, at := ends.find(w.next())
			out.add(blocks[i].Addr(at))
		}
	}
	var fits span
	if count == n {
		fits = span{n * addressSize(size), math.MaxInt}
	}
	return answerOf(out.records, nil, count < limit), fits
}

// hostAddresses answers with the addresses of a host name.
func (b answerBuilder) hostAddresses(addrs [][]byte, size uint8) Answer {
	count := max(0, min(len(addrs), b.room()/addressSize(size)))
	out := newAddressList(count, size, b.owner, b.ttl)
	for _, addr := range addrs[:count] {
		out.add(addr)
	}
	return answerOf(out.records, nil, count < len(addrs))
}

// single is the record of one address, made in one piece.
func single(owner string, ttl uint32, addr []byte) []dns.RR {
	if len(addr) == 4 {
		one := new(struct {
			dns.A
			records [1]dns.RR
		})
		one.records[0] = record.SetA(&one.A, owner, ttl, addr)
		return one.records[:]
	}
	one := new(struct {
		dns.AAAA
		records [1]dns.RR
	})
	one.records[0] = record.SetAAAA(&one.AAAA, owner, ttl, addr)
	return one.records[:]
}

// addressList makes address records of one family in two pieces.
type addressList struct {
	records []dns.RR
	a       []dns.A
	aaaa    []dns.AAAA
	owner   string
	ttl     uint32
}

func newAddressList(count int, size uint8, owner string, ttl uint32) addressList {
	l := addressList{records: make([]dns.RR, 0, count), owner: owner, ttl: ttl}
	if size == 4 {
		l.a = make([]dns.A, count)
	} else {
		l.aaaa = make([]dns.AAAA, count)
	}
	return l
}

func (l *addressList) add(addr []byte) {
	i := len(l.records)
	if len(addr) == 4 {
		l.records = append(l.records, record.SetA(&l.a[i], l.owner, l.ttl, addr))
	} else {
		l.records = append(l.records, record.SetAAAA(&l.aaaa[i], l.owner, l.ttl, addr))
	}
}

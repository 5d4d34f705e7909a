// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

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
func (b answerBuilder) addresses(size uint8) Answer {
	n := 0
	blocks := b.service.Blocks
	for i := range blocks {
		if block := &blocks[i]; block.InService && block.Size == size {
			n += block.Len()
		}
	}
	if n == 0 {
		return Answer{Result: Empty}
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
	return answerOf(out.records, nil, count < limit)
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

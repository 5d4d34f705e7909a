// SPDX-License-Identifier: Apache-2.0

package index

import (
	"strings"

	"github.com/miekg/dns"
)

// room is how many octets the question leaves for records.
func (q *Question) room() int {
	return q.Size - q.Reserved - sizeHeader - (len(q.Name) + 1) - 4 // type and class
}

// answerOf is the answer with these records, which have no spare capacity.
func answerOf(answer, extra []dns.RR, truncated bool) Answer {
	if len(answer) == 0 && !truncated {
		return Answer{Result: Empty}
	}
	return Answer{Result: Found, Answer: answer, Extra: extra, Truncated: truncated}
}

// prebuilt answers with records made before: as many as fit, and as many of the extra ones.
func (q *Question) prebuilt(answer, extra []dns.RR) Answer {
	if len(answer) == 0 {
		return Answer{Result: Empty}
	}
	room := q.room()
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
func recordSize(record dns.RR) int {
	switch rr := record.(type) {
	case *dns.A:
		return sizeA
	case *dns.AAAA:
		return sizeAAAA
	case *dns.SRV:
		return sizeSRV + len(rr.Target) + 1
	default:
		return sizeFixed - sizePointer + dns.Len(record)
	}
}

// pick is an endpoint of a service, and for SRV records a port number.
type pick struct {
	run, entry int32
	number     uint16
}

// answerBuilder makes the records of a headless service's answer.
type answerBuilder struct {
	service  *Service
	question *Question
	ttl      uint32
	zone     string
}

// limit is how many of n records may be taken.
func (q *Question) limit(n int) int {
	if q.Max > 0 {
		return min(n, q.Max)
	}
	return n
}

// addresses answers with the addresses of the service name that have that many octets.
func (b *answerBuilder) addresses(size uint8) Answer {
	n := 0
	runs := b.service.runs
	for i := range runs {
		if r := &runs[i]; r.inService && r.size == size {
			n += r.len()
		}
	}
	if n == 0 {
		return Answer{Result: Empty}
	}
	limit := b.question.limit(n)
	count := max(0, min(limit, b.question.room()/addressSize(size)))
	out := newAddressList(count, size, b.question.Name, b.ttl)
	if count == n {
		for i := range runs {
			if r := &runs[i]; r.inService && r.size == size {
				for j := range r.len() {
					out.add(r.addr(j))
				}
			}
		}
	} else {
		w := newWindow(n, true, b.question.Point)
		for i := range count {
			at := w.at(i)
			for k := range runs {
				r := &runs[k]
				if !r.inService || r.size != size {
					continue
				}
				if at < r.len() {
					out.add(r.addr(at))
					break
				}
				at -= r.len()
			}
		}
	}
	return answerOf(out.records, nil, count < limit)
}

// hostAddresses answers with the addresses of a host name.
func (b *answerBuilder) hostAddresses(picks []pick, size uint8) Answer {
	fits := max(0, b.question.room()/addressSize(size))
	truncated := fits < len(picks)
	picks = picks[:min(fits, len(picks))]
	if len(picks) == 1 {
		r := &b.service.runs[picks[0].run]
		return answerOf(single(b.question.Name, b.ttl, r.addr(int(picks[0].entry))), nil, truncated)
	}
	out := newAddressList(len(picks), size, b.question.Name, b.ttl)
	for _, p := range picks {
		out.add(b.service.runs[p.run].addr(int(p.entry)))
	}
	return answerOf(out.records, nil, truncated)
}

// single is the record of one address, made in one piece.
func single(owner string, ttl uint32, addr []byte) []dns.RR {
	if len(addr) == 4 {
		one := new(struct {
			recordA
			records [1]dns.RR
		})
		one.records[0] = one.recordA.set(owner, ttl, addr)
		return one.records[:]
	}
	one := new(struct {
		recordAAAA
		records [1]dns.RR
	})
	one.records[0] = one.recordAAAA.set(owner, ttl, addr)
	return one.records[:]
}

// addressList makes address records of one family in two pieces.
type addressList struct {
	records []dns.RR
	a       []recordA
	aaaa    []recordAAAA
	owner   string
	ttl     uint32
}

func newAddressList(count int, size uint8, owner string, ttl uint32) addressList {
	l := addressList{records: make([]dns.RR, 0, count), owner: owner, ttl: ttl}
	if size == 4 {
		l.a = make([]recordA, count)
	} else {
		l.aaaa = make([]recordAAAA, count)
	}
	return l
}

func (l *addressList) add(addr []byte) {
	i := len(l.records)
	if len(addr) == 4 {
		l.records = append(l.records, l.a[i].set(l.owner, l.ttl, addr))
	} else {
		l.records = append(l.records, l.aaaa[i].set(l.owner, l.ttl, addr))
	}
}

// serviceSuffix is what follows a service's key in the zone.
func serviceSuffix(zone string) string {
	return strings.TrimSuffix(serviceInfix, ".") + "." + strings.TrimPrefix(zone, ".")
}

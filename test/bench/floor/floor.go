// SPDX-License-Identifier: Apache-2.0

// Package floor answers with records that it has at hand: the least that a plugin can do for a reply. It is a CoreDNS
// plugin, too, which asks a server at its start for the replies to a file of queries, one a line, and answers with
// those:
//
//	floor ADDRESS FILE
package floor

import (
	"context"
	"slices"
	"sort"

	"github.com/miekg/dns"
)

// Floor is the least that a plugin can do for a reply: it has the records, sets the header and writes. It implements
// plugin.Handler.
type Floor struct {
	answer, ns, extra []dns.RR
	rcode             int
	truncated         bool
}

// New makes the same reply as the given one, but for the OPT record, which the server adds.
func New(reply *dns.Msg) *Floor {
	reply = reply.Copy()
	return &Floor{
		answer: slices.Clip(reply.Answer), ns: slices.Clip(reply.Ns), extra: slices.Clip(withoutOPT(reply.Extra)),
		rcode: reply.Rcode, truncated: reply.Truncated,
	}
}

func withoutOPT(records []dns.RR) []dns.RR {
	return slices.DeleteFunc(records, func(rr dns.RR) bool { return rr.Header().Rrtype == dns.TypeOPT })
}

// Name implements plugin.Handler.
func (*Floor) Name() string { return "floor" }

// ServeDNS implements plugin.Handler.
func (f *Floor) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg)
	m.SetReply(r)
	m.Authoritative, m.Truncated = true, f.truncated
	m.Answer, m.Ns, m.Extra, m.Rcode = f.answer, f.ns, f.extra, f.rcode
	return f.rcode, w.WriteMsg(m)
}

// Cut is the floor of a reply that does not fit: the first records of the answer that do, compressed, with the OPT
// record of a query of that size.
func Cut(all *dns.Msg, size int) *Floor {
	records := all.Answer
	fits := sort.Search(len(records), func(n int) bool {
		m := &dns.Msg{Compress: true, Question: all.Question, Answer: records[:n+1]}
		m.SetEdns0(uint16(size), false)
		return m.Len() > size
	})
	f := New(&dns.Msg{MsgHdr: dns.MsgHdr{Rcode: all.Rcode}, Answer: records[:fits]})
	f.truncated = true
	return f
}

// Sequence answers with the next of its replies, whatever the question is: it looks up nothing. It begins again after
// the last one. It implements plugin.Handler.
type Sequence struct {
	floors []Floor
	next   int
}

// NewSequence makes a sequence of replies. The records of a reply are somewhere in memory, as after a start.
func NewSequence(floors []*Floor) *Sequence {
	s := new(Sequence)
	for _, f := range floors {
		s.floors = append(s.floors, *f)
	}
	return s
}

// Name implements plugin.Handler.
func (*Sequence) Name() string { return "floor" }

// ServeDNS implements plugin.Handler.
func (s *Sequence) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	f := &s.floors[s.next]
	s.next = (s.next + 1) % len(s.floors)
	return f.ServeDNS(ctx, w, r)
}

// Len is the number of records in the answer.
func (f *Floor) Len() int { return len(f.answer) }

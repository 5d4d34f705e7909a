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

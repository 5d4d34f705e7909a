// SPDX-License-Identifier: Apache-2.0

// Package multicluster is a CoreDNS plugin that answers for the services of a clusterset.
//
// It serves what an implementation of the Multi-Cluster Services API (KEP-1645) writes into the local Kubernetes API:
// ServiceImports and EndpointSlices. Package watch follows them and package index holds them as record sets; a query is
// parsed by package name and takes one look at a snapshot of the index.
package multicluster

import (
	"context"
	"hash/maphash"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/fall"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

const pluginName = "multicluster"

var log = clog.NewWithPlugin(pluginName)

// Multicluster is the plugin. Its fields are set before it serves; the index is the one thing that changes.
type Multicluster struct {
	Next plugin.Handler
	// Zones are those it is authoritative for, fully qualified and in lower case.
	Zones []string
	// Fall are the zones for which a name that does not exist is passed on.
	Fall fall.F

	ttl            uint32
	maxAnswers     int // 0: as many as fit
	prefer         index.Preference
	cluster        string // the id of the own one, in lower case; empty: it is not known which endpoints are near
	signs          bool   // the server signs replies (plugin tsig)
	startupTimeout time.Duration
	options        watch.Options

	apexes []apex // by the number of the zone
	source atomic.Pointer[watch.Source]
	index  atomic.Pointer[index.Index]
	// before is what the plugin that this one replaces knew last, while this one knows nothing yet.
	before atomic.Pointer[index.Snapshot]
	// serves is where the server block is served, as far as that tells it from another one for the same zones.
	serves string
	seed   maphash.Seed
	now    func() time.Time
}

// Name implements plugin.Handler.
func (*Multicluster) Name() string { return pluginName }

// ServeDNS implements plugin.Handler.
func (m *Multicluster) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	question := &r.Question[0]
	zone, below := m.match(question.Name)
	if zone < 0 || question.Qclass != dns.ClassINET {
		return plugin.NextOrFailure(pluginName, m.Next, ctx, w, r)
	}
	snapshot := m.snapshot()
	if snapshot == nil {
		return dns.RcodeServerFailure, nil
	}
	if question.Qtype == dns.TypeAXFR || question.Qtype == dns.TypeIXFR {
		return dns.RcodeRefused, nil // the transfer plugin answers these
	}
	answer := m.lookup(w, r, snapshot, zone, below)
	if answer.Result == index.NotExist && m.Fall.Through(question.Name) {
		return plugin.NextOrFailure(pluginName, m.Next, ctx, w, r)
	}
	msg := m.newReply(r, &answer, snapshot.SOA(zone))
	if err := w.WriteMsg(msg); err != nil {
		return dns.RcodeServerFailure, err
	}
	return msg.Rcode, nil
}

// lookup finds the answer to a question for a name in a zone. It is a function of its own, as is newReply, so that what
// they need of the stack is gone when the reply is packed: the server starts a goroutine for each query, with a small
// stack, and one that has to grow costs as much as the answer.
//
//go:noinline
func (m *Multicluster) lookup(
	w dns.ResponseWriter, r *dns.Msg, snapshot *index.Snapshot, zone int, below string,
) index.Answer {
	question := &r.Question[0]
	q := index.Question{Name: question.Name, Zone: zone, Type: question.Qtype, Max: m.maxAnswers, Prefer: m.prefer}
	q.Request.Parse(below)
	switch q.Request.Kind {
	case name.Apex, name.Version, name.NameServer, name.Above:
		return m.apexes[zone].lookup(q.Request.Kind, question.Qtype, snapshot.SOA(zone))
	}
	answer := snapshot.Lookup(&q)
	if answer.Result == index.NeedClient {
		q.Client = m.client(w, r)
		answer = snapshot.Lookup(&q)
	}
	return answer
}

// match returns the number of the longest zone that the name is in, or -1, and the part of the name before it.
func (m *Multicluster) match(qname string) (zone int, below string) {
	zone = -1
	for i, z := range m.Zones {
		if zone >= 0 && len(z) <= len(m.Zones[zone]) {
			continue
		}
		if cut, ok := name.Cut(qname, z); ok {
			zone, below = i, cut
		}
	}
	return zone, below
}

// snapshot is the present state of the index, or nil before the first sync. After a reload that is what was known before
// it, until the first sync.
func (m *Multicluster) snapshot() *index.Snapshot {
	x := m.index.Load()
	if x == nil {
		return nil
	}
	if snapshot := x.Snapshot(); snapshot != nil {
		return snapshot
	}
	return m.before.Load()
}

// client is what the client can take.
func (m *Multicluster) client(w dns.ResponseWriter, r *dns.Msg) index.Client {
	state := request.Request{W: w, Req: r}
	ip := clientIP(w)
	c := index.Client{Size: state.Size(), Point: m.point(ip)}
	if opt := r.IsEdns0(); opt != nil {
		c.Reserved = dns.Len(opt) // the server puts it into the reply
	}
	if source := m.source.Load(); source != nil && m.cluster != "" {
		addr, _ := netip.AddrFromSlice(ip)
		c.Place = source.Topology().Place(m.cluster, addr)
	}
	return c
}

// clientIP is the client's address, nil where it has none. An address with the data of a proxy (plugin proxyproto) has
// that of the client inside.
func clientIP(w dns.ResponseWriter) net.IP {
	addr := w.RemoteAddr()
	if proxied, ok := addr.(interface{ Unwrap() net.Addr }); ok {
		addr = proxied.Unwrap()
	}
	switch addr := addr.(type) {
	case *net.UDPAddr:
		return addr.IP
	case *net.TCPAddr:
		return addr.IP
	}
	return nil
}

// turn is how long a client gets the same part of what is too much for an answer.
const turn = time.Minute

// point is where a client's part of an answer begins. It is the same for A and AAAA, which a client asks for together,
// and moves on in time, so that a cache that asks for many clients does not direct them to the same few endpoints.
func (m *Multicluster) point(ip net.IP) uint64 {
	return maphash.Bytes(m.seed, ip) + uint64(m.now().UnixNano())/uint64(turn)
}

// message is a reply and its question in one piece.
type message struct {
	dns.Msg
	question [1]dns.Question
}

// newReply makes a reply of an answer. Sections without records of the answer are left to the SOA.
//
//go:noinline
func (m *Multicluster) newReply(r *dns.Msg, answer *index.Answer, soa []dns.RR) *dns.Msg {
	msg := new(message)
	msg.question[0] = r.Question[0]
	msg.Id, msg.Response, msg.Opcode, msg.Authoritative = r.Id, true, r.Opcode, true
	msg.RecursionDesired, msg.CheckingDisabled = r.RecursionDesired, r.CheckingDisabled
	msg.Question = msg.question[:]
	switch answer.Result {
	case index.Found:
		msg.Answer, msg.Extra, msg.Truncated = answer.Answer, answer.Extra, answer.Truncated
		// What fits was chosen for names that are compressed. The server sees to that, except for a message that is signed.
		msg.Compress = m.signs
	case index.Empty:
		msg.Ns = soa
	case index.NotExist:
		msg.Ns, msg.Rcode = soa, dns.RcodeNameError
	}
	return &msg.Msg
}

// SPDX-License-Identifier: Apache-2.0

// Package multicluster is a CoreDNS plugin that answers for the services of a clusterset.
//
// It serves what an implementation of the Multi-Cluster Services API (KEP-1645) writes into the local Kubernetes API:
// ServiceImports and EndpointSlices. Package watch follows them:
//
//	ServiceImport ─► object.Import ────┐
//	                                   ├─► record.Build ─► record.Service ─► Index.Update ─► index.Snapshot
//	EndpointSlice ─► object.Endpoints ─┘                                                           │
//	                                     query ─► name.Request ─► answer.Question ─► Snapshot.Lookup ─► answer.Answer
//
// A query takes one look at an immutable snapshot.
package multicluster

import (
	"context"
	"hash/fnv"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/fall"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/answer"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/name"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/topology"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

const pluginName = "multicluster"

var log = clog.NewWithPlugin(pluginName)

// Multicluster is the plugin. Its fields are set before it serves; source and index change.
type Multicluster struct {
	Next plugin.Handler
	// Zones are those it is authoritative for, fully qualified and in lower case.
	Zones []string
	// Reverse are the reverse zones that it is authoritative for, likewise. Their numbers follow those of Zones.
	Reverse []string
	// Fall are the zones for which a name that does not exist is passed on.
	Fall fall.F

	ttl            uint32
	maxAnswers     int // 0: as many as fit
	ignoreEmpty    bool
	prefer         topology.Preference
	cluster        string // the id of the own one, in lower case; empty: it is not known which endpoints are near
	signature      int    // octets of the longest signature of a reply (plugin tsig); 0: the server signs none
	startupTimeout time.Duration
	options        watch.Options

	instance *caddy.Instance
	keys     []string      // of the server block
	previous *Multicluster // the plugin that a reload replaces; nil after the start

	apexes []apex // by the number of the zone
	source atomic.Pointer[watch.Source]
	index  atomic.Pointer[index.Index]
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
	if snapshot == nil && zone >= len(m.Zones) && m.Fall.Through(question.Name) {
		// the local cluster's addresses do not wait for others
		return plugin.NextOrFailure(pluginName, m.Next, ctx, w, r)
	}
	if snapshot == nil {
		return m.serveUnsynced(ctx, w, r, below)
	}
	if question.Qtype == dns.TypeAXFR || question.Qtype == dns.TypeIXFR {
		return dns.RcodeRefused, nil // the transfer plugin answers these
	}
	found := m.lookup(w, r, snapshot, zone, below)
	if found.Result == answer.NotExist && m.Fall.Through(question.Name) && m.Next != nil {
		return plugin.NextOrFailure(pluginName, m.Next, ctx, w, r)
	}
	return m.reply(w, r, &found, snapshot.SOA(zone))
}

// serveUnsynced answers before the first sync, when any service may exist. With fallthrough the other plugins go on to
// answer for the names they have, as if no service existed. An NXDOMAIN of that time has no SOA record, so that no
// resolver keeps it (RFC 2308, section 5).
func (m *Multicluster) serveUnsynced(ctx context.Context, w dns.ResponseWriter, r *dns.Msg, below string) (int, error) {
	switch kind := name.Parse(below).Kind; {
	case !m.Fall.Through(r.Question[0].Name), kind == name.Apex, kind == name.Version, kind == name.NameServer,
		kind == name.Above:
		return dns.RcodeServerFailure, nil
	case m.Next == nil:
		return m.reply(w, r, &answer.Answer{Result: answer.NotExist}, nil)
	default:
		return plugin.NextOrFailure(pluginName, m.Next, ctx, w, r)
	}
}

func (m *Multicluster) reply(w dns.ResponseWriter, r *dns.Msg, found *answer.Answer, soa []dns.RR) (int, error) {
	msg := m.newReply(r, found, soa)
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
) answer.Answer {
	question := &r.Question[0]
	if zone >= len(m.Zones) && below != "" {
		return snapshot.LookupReverse(question.Name, question.Qtype)
	}
	q := answer.Question{Name: question.Name, Zone: zone, Type: question.Qtype, Max: m.maxAnswers, Prefer: m.prefer}
	q.Request = name.Parse(below)
	switch q.Request.Kind {
	case name.Apex, name.Version, name.NameServer, name.Above:
		return m.apexes[zone].lookup(q.Request.Kind, question.Qtype, snapshot.SOA(zone))
	}
	return snapshot.Lookup(&q, func() answer.Client { return m.client(w, r) })
}

// match returns the number of the longest zone that the name is in, or -1, and the part of the name before it.
func (m *Multicluster) match(qname string) (zone int, below string) {
	zone = -1
	longest := 0
	for list, zones := range [...][]string{m.Zones, m.Reverse} {
		for i, z := range zones {
			if len(z) <= longest {
				continue
			}
			if cut, ok := name.Cut(qname, z); ok {
				zone, below, longest = list*len(m.Zones)+i, cut, len(z)
			}
		}
	}
	return zone, below
}

// snapshot is the present state of the index, or nil before the first sync.
func (m *Multicluster) snapshot() *index.Snapshot {
	if x := m.index.Load(); x != nil {
		return x.Snapshot()
	}
	return nil
}

// sizeOPT is the octets of an OPT record without options. The server puts the record of the query into the reply, and
// drops options that no plugin registered, such as cookies and padding.
const sizeOPT = 11

// client collects what bounds and orders an answer: the octets for records, where in a large set to start, and the
// client's place.
func (m *Multicluster) client(w dns.ResponseWriter, r *dns.Msg) answer.Client {
	state := request.Request{W: w, Req: r}
	ip := clientIP(w)
	c := answer.Client{Size: state.Size(), Point: m.point(ip)}
	if opt := r.IsEdns0(); opt != nil {
		c.Reserved = sizeOPT
		if slices.ContainsFunc(opt.Option, func(o dns.EDNS0) bool { return edns.SupportedOption(o.Option()) }) {
			c.Reserved = dns.Len(opt)
		}
	}
	c.Reserved += m.signature // it cannot be seen here whether the reply gets one
	if source := m.source.Load(); source != nil && m.cluster != "" {
		addr, _ := netip.AddrFromSlice(ip)
		c.Place = source.Topology().Place(m.cluster, addr)
	}
	return c
}

// clientIP returns the client's address, nil if it has none. An address with the data of a proxy (plugin proxyproto)
// has that of the client inside.
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

// turn is how long a client gets the same part of a set that is too large for an answer.
const turn = time.Minute

// point is where a client's part of an answer begins. It is the same for A and AAAA, which a client asks for together
// and perhaps of two replicas, so the hash has no seed. It moves on in time, so that a cache that asks for many clients
// does not direct them to the same few endpoints.
func (m *Multicluster) point(ip net.IP) uint64 {
	hash := fnv.New64a()
	hash.Write(ip.To16()) // an IPv4 address has two forms
	return hash.Sum64() + uint64(m.now().UnixNano())/uint64(turn)
}

// message is a reply and its question in one piece.
type message struct {
	dns.Msg
	question [1]dns.Question
}

// newReply makes a reply of an answer. Sections without records of the answer are left to the SOA.
//
//go:noinline
func (m *Multicluster) newReply(r *dns.Msg, found *answer.Answer, soa []dns.RR) *dns.Msg {
	msg := new(message)
	msg.question[0] = r.Question[0]
	msg.Id, msg.Response, msg.Opcode, msg.Authoritative = r.Id, true, r.Opcode, true
	msg.RecursionDesired, msg.CheckingDisabled = r.RecursionDesired, r.CheckingDisabled
	msg.Question = msg.question[:]
	switch found.Result {
	case answer.Found:
		msg.Answer, msg.Extra, msg.Truncated = found.Answer, found.Extra, found.Truncated
		// What fits was chosen for names that are compressed. The server sees to that, except for a message that is
		// signed.
		msg.Compress = m.signature > 0
	case answer.Empty:
		msg.Ns = soa
	case answer.NotExist:
		msg.Ns, msg.Rcode = soa, dns.RcodeNameError
	}
	return &msg.Msg
}

// SPDX-License-Identifier: Apache-2.0

// Package multicluster is a CoreDNS plugin that answers for the services of a clusterset.
//
// It serves what an implementation of the Multi-Cluster Services API (KEP-1645) writes into the local Kubernetes API:
// ServiceImports and EndpointSlices. Package watch follows them:
//
//	ServiceImport ─► record.Import ────┐
//	                                   ├─► record.Build ─► record.Service ─► record.Index
//	EndpointSlice ─► record.Endpoints ─┘                                          │
//	                              query ─► record.Request ─► record.Question ─► Find ─► Lookup ─► record.Answer
package multicluster

import (
	"context"
	"hash/fnv"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/fall"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

const pluginName = "multicluster"

var log = clog.NewWithPlugin(pluginName)

// Multicluster is the plugin. Only previous, source and index change while it serves.
type Multicluster struct {
	Next plugin.Handler
	// Fall lists the zones in which a query for a name that does not exist goes to the next plugin.
	Fall fall.F

	config         record.Config
	maxAnswers     int // 0: as many as fit
	prefer         record.Preference
	startupTimeout time.Duration
	options        watch.Options

	server  *dnsserver.Config // of the server block; it knows its view only after setup
	keys    []string          // of the server block, each prefixed with an address on which the block listens
	reloads bool              // other plugins answered when this one was set up
	// previous is the plugin that a reload replaces. It answers until this plugin has answers.
	previous atomic.Pointer[Multicluster]

	apexes []record.Apex // indexed like config.Zones
	source atomic.Pointer[watch.Source]
	index  atomic.Pointer[record.Index]
	now    func() time.Time
}

// Name implements plugin.Handler.
func (*Multicluster) Name() string { return pluginName }

// ServeDNS implements plugin.Handler.
func (m *Multicluster) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	// Growing a stack copies it. WriteMsg needs the deepest stack, so answer has returned before it is called.
	reply, rcode := m.answer(w, r)
	if reply == nil && rcode == dns.RcodeSuccess {
		return plugin.NextOrFailure(pluginName, m.Next, ctx, w, r)
	}
	if reply != nil {
		if err := w.WriteMsg(reply); err != nil {
			return dns.RcodeServerFailure, err
		}
	}
	return rcode, nil
}

// answer returns the reply to a question and its rcode. If the reply is nil, the server replies with the rcode; if that
// is RcodeSuccess, the next plugin answers.
func (m *Multicluster) answer(w dns.ResponseWriter, r *dns.Msg) (reply *dns.Msg, rcode int) {
	question := &r.Question[0]
	zone, below := m.match(question.Name)
	if zone < 0 || question.Qclass != dns.ClassINET {
		return nil, dns.RcodeSuccess
	}
	active := m.active()
	if active != m {
		if z, b := active.match(question.Name); z >= 0 {
			zone, below = z, b
		} else {
			active = m
		}
	}
	state := active.state()
	if state == nil { // any name may exist
		if m.Fall.Through(question.Name) && m.Next != nil {
			return nil, dns.RcodeSuccess
		}
		return nil, dns.RcodeServerFailure
	}
	if question.Qtype == dns.TypeAXFR || question.Qtype == dns.TypeIXFR {
		return nil, dns.RcodeRefused // the transfer plugin answers these
	}
	var q record.Question
	q.Name, q.Zone, q.Type, q.Max, q.Prefer = question.Name, zone, question.Qtype, active.maxAnswers, active.prefer
	q.Answer.Result = active.lookup(&q, below, state, request.Request{W: w, Req: r})
	if q.Answer.Result == record.NotExist && m.Fall.Through(q.Name) && m.Next != nil {
		return nil, dns.RcodeSuccess
	}
	return m.reply(r, &q.Answer, state.SOA(zone))
}

// lookup answers a question for a name in a zone, except for the result, which it returns.
func (m *Multicluster) lookup(q *record.Question, below string, state *record.State, r request.Request) record.Result {
	if m.config.IsReverse(q.Zone) && below != "" {
		return m.index.Load().LookupReverse(q)
	}
	q.Request.Parse(below)
	switch kind := q.Request.Kind; {
	case kind == record.KindApex:
		return m.apexes[q.Zone].Lookup(q, state.SOA(q.Zone))
	case kind == record.KindTopologyZone && !m.options.TopologyZones:
		return record.NotExist
	}
	service := m.index.Load().Find(q)
	if service == nil {
		return q.Answer.Result
	}
	if service.Limits(q) {
		m.fill(&q.Client, &r)
	}
	return service.Lookup(q)
}

// match returns the index of the longest zone that contains the name, or -1, and the part of the name before the zone.
func (m *Multicluster) match(qname string) (zone int, below string) {
	zone = -1
	zones := m.config.Zones
	for i, z := range zones {
		cut := len(qname) - len(z)
		if cut < 0 || !strings.EqualFold(qname[cut:], z) || cut > 0 && z != "." && qname[cut-1] != '.' ||
			zone >= 0 && len(z) < len(zones[zone]) {
			continue
		}
		if strings.IndexByte(qname, '\\') < 0 || dns.IsSubDomain(z, qname) { // the dot before the zone may be escaped
			zone, below = i, strings.TrimSuffix(qname[:cut], ".")
		}
	}
	return zone, below
}

// active returns the plugin that answers: the previous one until this plugin is synced.
func (m *Multicluster) active() *Multicluster {
	if previous := m.previous.Load(); previous != nil && m.state() == nil {
		return previous
	}
	return m
}

// state returns the state of the index, or nil before the first sync.
func (m *Multicluster) state() *record.State {
	if x := m.index.Load(); x != nil {
		return x.State()
	}
	return nil
}

// sizeOPT is the number of octets of an OPT record without options. The server copies the OPT record of the query into
// the reply, without options that no plugin registered, such as cookies and padding.
const sizeOPT = 11

// fill sets what limits and orders an answer: the octets available for records, the start in a large set, and the
// location of the client.
func (m *Multicluster) fill(c *record.Client, r *request.Request) {
	ip, _ := netip.ParseAddr(r.IP())
	ip = ip.Unmap().WithZone("")
	c.Size, c.Point = r.Size(), m.point(ip)
	if r.Req.IsEdns0() != nil {
		c.Size -= sizeOPT
	}
	if source := m.source.Load(); source != nil {
		c.Zone = source.Topology().Zone(ip)
	}
}

// turn is how long a client gets the same part of a set that is too large for one answer.
const turn = time.Minute

// point returns where a client's part of a large set begins. A client asks for A and AAAA together, perhaps from two
// replicas, and must get the same part, so the hash has no seed. The point moves with time, so that a cache that asks
// for many clients does not direct all of them to the same few endpoints.
func (m *Multicluster) point(ip netip.Addr) uint64 {
	hash := fnv.New64a()
	hash.Write(ip.AsSlice())
	return hash.Sum64() + uint64(m.now().UnixNano())/uint64(turn)
}

// reply returns the reply with an answer, and its rcode. Without an answer, the authority section has the SOA record.
func (m *Multicluster) reply(r *dns.Msg, found *record.Answer, soa []dns.RR) (*dns.Msg, int) {
	msg := new(dns.Msg).SetReply(r)
	msg.Authoritative = true
	switch found.Result {
	case record.Found:
		msg.Answer, msg.Extra, msg.Truncated = found.Answer, found.Extra, found.Truncated
		msg.Compress = true // the answer was sized for this; the server turns it off for replies that fit without
	case record.Empty:
		msg.Ns = soa
	case record.NotExist:
		msg.Ns, msg.Rcode = soa, dns.RcodeNameError
	}
	return msg, msg.Rcode
}

// Metadata implements metadata.Provider. Values are in lower case, because views and policies compare them.
func (m *Multicluster) Metadata(ctx context.Context, state request.Request) context.Context {
	zone, below := m.match(state.Name())
	if zone < 0 || m.config.IsReverse(zone) {
		return ctx
	}
	var asked record.Request
	asked.Parse(below)
	for label, value := range map[string]string{
		"multicluster/namespace": asked.Namespace,
		"multicluster/service":   asked.Service,
		"multicluster/port-name": asked.Port,
		"multicluster/protocol":  asked.Protocol,
		"multicluster/endpoint":  asked.Host,
		"multicluster/cluster":   asked.Cluster,
	} {
		metadata.SetValueFunc(ctx, label, func() string { return value })
	}
	return ctx
}

// Ready implements ready.Readiness. It returns true once everything was listed, or once the API server reported that
// the remaining resources are missing or forbidden: this plugin's zones are then not served, but the server's other
// zones are.
func (m *Multicluster) Ready() bool {
	source := m.source.Load()
	switch {
	case source == nil: // during a reload, this plugin starts after the ready plugin
		return m.reloads
	case m.previous.Load() != nil: // read after source, and cleared after source has settled
		return true
	}
	select {
	case <-source.Settled():
		return true
	default:
		return false
	}
}

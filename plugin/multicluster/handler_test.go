// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
)

// demo is a clusterset of the clusters east and west.eu, with a ClusterSetIP service web, a headless service db, and more.
var demo = []service{
	{"web", recordtest.ClusterSetIP("10.42.0.1 fd00:42::1", "http=80 dns=53/UDP dns-tcp=53/TCP"), nil},
	{"v4", recordtest.ClusterSetIP("10.42.0.2", "=8080"), nil},
	{"pending", recordtest.ClusterSetIP("", "http=80"), nil},
	{"portless", recordtest.ClusterSetIP("10.42.0.3", ""), nil},
	{"db", recordtest.Headless("sql=5432 stats=9000/UDP"), recordtest.Slices(
		"east[sql=5432 stats=9100/UDP admin=1]: 10.1.0.1/db-0 10.1.0.2/db-1 !10.1.0.3/db-2; east: fd00:1::1/db-0; " +
			"west.eu[sql=15432]: 10.2.0.1 10.2.0.1 ~10.2.0.9; west.eu[sql=15432]: fd00:2::")},
	{"idle", recordtest.SQL, recordtest.Slices("east: !10.3.0.1")},
	{"draining", recordtest.SQL, recordtest.Slices("east: ~10.4.0.1")},
}

// cases are queries to demo, as in readCases.
var cases = append(readCases(`
	SOA @ = ns.dns.@ hostmaster.@ 1800000000 7200 1800 86400 5
	NS @ = ns.dns.@ + ns.dns.@ A 192.0.2.53, ns.dns.@ AAAA 2001:db8::53
	A @
	A ns.dns.@ = 192.0.2.53
	AAAA ns.dns.@ = 2001:db8::53
	TXT ns.dns.@
	A dns.@
	A dns-version.@

	A web.demo.svc.@ = 10.42.0.1
	AAAA web.demo.svc.@ = fd00:42::1
	SRV web.demo.svc.@ = 0 100 53 web.demo.svc.@, 0 100 80 web.demo.svc.@ + web.demo.svc.@ A 10.42.0.1, web.demo.svc.@ AAAA fd00:42::1
	SRV _http._tcp.web.demo.svc.@ = 0 100 80 web.demo.svc.@ + web.demo.svc.@ A 10.42.0.1, web.demo.svc.@ AAAA fd00:42::1
	SRV _sctp.web.demo.svc.@ !
	SRV _x._tcp.db.demo.svc.@ !
	SRV _udp.web.demo.svc.@
	MX web.demo.svc.@
	SRV v4.demo.svc.@ = 0 100 8080 v4.demo.svc.@ + v4.demo.svc.@ A 10.42.0.2
	A pending.demo.svc.@
	SRV pending.demo.svc.@
	SRV _http._tcp.pending.demo.svc.@

	A db.demo.svc.@ = 10.1.0.1, 10.1.0.2, 10.2.0.1
	AAAA db.demo.svc.@ = fd00:1::1, fd00:2::
	SRV _sql._tcp.db.demo.svc.@ = 0 100 5432 db-0.east.db.demo.svc.@, 0 100 5432 db-1.east.db.demo.svc.@, \
		0 100 15432 10-2-0-1.west.eu.db.demo.svc.@, 0 100 15432 fd00-2--0.west.eu.db.demo.svc.@ \
		+ db-0.east.db.demo.svc.@ A 10.1.0.1, db-0.east.db.demo.svc.@ AAAA fd00:1::1, db-1.east.db.demo.svc.@ A 10.1.0.2, \
		10-2-0-1.west.eu.db.demo.svc.@ A 10.2.0.1, fd00-2--0.west.eu.db.demo.svc.@ AAAA fd00:2::
	SRV _stats._udp.db.demo.svc.@ = 0 100 9100 db-0.east.db.demo.svc.@, 0 100 9100 db-1.east.db.demo.svc.@ \
		+ db-0.east.db.demo.svc.@ A 10.1.0.1, db-0.east.db.demo.svc.@ AAAA fd00:1::1, db-1.east.db.demo.svc.@ A 10.1.0.2
	A db-0.east.db.demo.svc.@ = 10.1.0.1
	AAAA db-0.east.db.demo.svc.@ = fd00:1::1
	SRV db-0.east.db.demo.svc.@
	AAAA db-1.east.db.demo.svc.@
	A db-2.east.db.demo.svc.@ !
	A db-0.west.eu.db.demo.svc.@ !
	A 10-1-0-1.east.db.demo.svc.@ !
	A 10-2-0-1.west.eu.db.demo.svc.@ = 10.2.0.1
	AAAA 10-2-0-1.west.eu.db.demo.svc.@
	A 10-2-0-1.eu.db.demo.svc.@ !
	AAAA fd00-2--0.west.eu.db.demo.svc.@ = fd00:2::
	A east.db.demo.svc.@
	A west.eu.db.demo.svc.@
	A eu.db.demo.svc.@
	A west.db.demo.svc.@ !
	A _tcp.db.demo.svc.@

	A svc.@
	A demo.svc.@
	A other.svc.@ !
	A web.other.svc.@ !
	A none.demo.svc.@ !
	A *.demo.svc.@ !
	A web.demo.@ !`), test.Case{
	Qname: "dns-version.clusterset.local.", Qtype: dns.TypeTXT,
	Answer: records(`dns-version.clusterset.local. 28800 IN TXT "1.0.0"`),
})

// TestAnswers: names compare without case, and the question is echoed. A plugin without answers uses the answers of the
// previous plugin, which may have other zones in another order. The longest matching zone counts.
func TestAnswers(t *testing.T) {
	m, next := newTestPlugin(demo...), newMulticluster()
	next.config.Zones = []string{"example.org.", testZone, "."}
	next.previous.Store(m)
	for _, tc := range cases {
		t.Run(dns.TypeToString[tc.Qtype]+" "+tc.Qname, func(t *testing.T) {
			check(t, m, tc)
			tc.Qname = strings.ToUpper(tc.Qname)
			upper := ask(t, next, tc.Msg(), udpClient)
			if len(upper.Answer) != len(tc.Answer) || upper.Rcode != tc.Rcode || upper.Question[0].Name != tc.Qname {
				t.Errorf("in upper case the reply is %v", upper)
			}
		})
	}
	if records, err := next.Transfer(testZone, testTime); err != nil || (<-records)[0].Header().Name != testZone {
		t.Errorf("the transfer is not of %s: %v", testZone, err)
	}
	for _, name := range []string{"example.org.", "org.", "."} {
		if reply := ask(t, next, new(dns.Msg).SetQuestion(name, dns.TypeA), udpClient); reply.Rcode != dns.RcodeServerFailure {
			t.Errorf("a name that only the new zones have is answered with %v", reply)
		}
	}
}

// TestZonalNames: names with a topology zone, as in the kubernetes plugin. Unlike there, the names above them exist
// (RFC 8020), and prefer falls back to all zones for A and AAAA separately.
func TestZonalNames(t *testing.T) {
	const tests = `
		A eu-1a.pin._zone.pg.demo.svc.@ = 10.1.0.1, 10.2.0.1
		A EU-1A.prefer._zone.pg.demo.svc.@ = 10.1.0.1, 10.2.0.1
		A corp.example.pin._zone.pg.demo.svc.@ = 10.1.0.2
		A eu-1c.pin._zone.pg.demo.svc.@
		A eu-1c.prefer._zone.pg.demo.svc.@ = 10.1.0.1, 10.1.0.2, 10.2.0.1, 10.2.0.3
		AAAA eu-1a.pin._zone.pg.demo.svc.@
		AAAA eu-1a.prefer._zone.pg.demo.svc.@ = fd00:1::2
		SRV corp.example.pin._zone.pg.demo.svc.@ = 0 100 5432 10-1-0-2.east.pg.demo.svc.@, 0 100 5432 fd00-1--2.east.pg.demo.svc.@ \
			+ 10-1-0-2.east.pg.demo.svc.@ A 10.1.0.2, fd00-1--2.east.pg.demo.svc.@ AAAA fd00:1::2
		SRV eu-1c.pin._zone.pg.demo.svc.@
		A pin._zone.pg.demo.svc.@
		A _zone.pg.demo.svc.@
		A eu-1a.pin._zone.none.demo.svc.@ !
		A eu-1a.pin._zone.web.demo.svc.@ !
		A eu-1a.pin._zone.demo.svc.@ !`
	m := newTestPlugin(append(demo, service{"pg", recordtest.Headless("=5432"), recordtest.Slices(
		"east[=5432]: 10.1.0.1@eu-1a 10.1.0.2@Corp.example; east[=5432]: fd00:1::2@Corp.example; " +
			"west[=5432]: 10.2.0.1@eu-1a 10.2.0.3 !10.2.0.4@eu-1d")})...)
	for _, tc := range readCases(tests) {
		m.options.TopologyZones = false
		refused := ask(t, m, tc.Msg(), udpClient)
		if refused.Rcode != dns.RcodeNameError {
			t.Errorf("without the option, %s has %v", tc.Qname, refused)
		}
		m.options.TopologyZones = true
		check(t, m, tc)
	}
}

// answering returns a plugin that returns this rcode.
func answering(rcode int) plugin.Handler { return test.NextHandler(rcode, nil) }

// check compares the reply to a query with the test case.
func check(t *testing.T, m *Multicluster, tc test.Case) {
	t.Helper()
	r := tc.Msg()
	r.SetEdns0(4096, tc.Do)
	reply := ask(t, m, r, udpClient)
	if reply.Question[0] != r.Question[0] {
		t.Errorf("the question came back as %v", reply.Question[0])
	}
	if !reply.Response || !reply.Authoritative {
		t.Errorf("response %v, authoritative %v, want both", reply.Response, reply.Authoritative)
	}
	if err := test.SortAndCheck(reply, tc); err != nil {
		t.Errorf("%s %s: %v; the reply is %v", dns.TypeToString[tc.Qtype], tc.Qname, err, reply)
	}
}

// TestWhatOthersAnswer: the next plugin answers names outside of the zones, other classes and, with fallthrough, names
// that do not exist. Before the first sync the plugin cannot know which names exist.
func TestWhatOthersAnswer(t *testing.T) {
	const next = dns.RcodeBadName // an rcode that the plugin never returns
	codes := map[string]int{"next": next}
	for code, name := range dns.RcodeToString {
		codes[name] = code
	}
	for name, test := range map[string]struct {
		synced, alone bool   // alone: there is no next plugin
		fall          string // zones of fallthrough
		want          string
	}{
		"not synced":                             {false, false, "", "web.demo.svc.@ SERVFAIL, @ SERVFAIL, svc.@ SERVFAIL, web.demo.svc.cluster.local. next, 1.0.1.10.in-addr.arpa. SERVFAIL"},
		"not synced, fallthrough":                {false, false, ".", "web.demo.svc.@ next, @ next, web.demo.svc.cluster.local. next"},
		"not synced, fallthrough to no plugin":   {false, true, ".", "web.demo.svc.@ SERVFAIL"},
		"not synced, fallthrough elsewhere":      {false, false, "example.org.", "web.demo.svc.@ SERVFAIL, web.demo.svc.cluster.local. next"},
		"not synced, fallthrough of the reverse": {false, false, "in-addr.arpa.", "web.demo.svc.@ SERVFAIL, 1.0.1.10.in-addr.arpa. next"},
		"synced":                                 {true, false, "", "web.demo.svc.cluster.local. next, 1.0.1.10.in-addr.arpa. NXDOMAIN"},
		"synced, fallthrough":                    {true, false, ".", "web.demo.svc.@ NOERROR, demo.svc.@ NOERROR, none.demo.svc.@ next, a.@ next, web.demo.svc.cluster.local. next"},
		"names like the zone":                    {true, false, "", `notclusterset.local. next, local. next, . next, a\.clusterset.local. next, a\\.clusterset.local. NXDOMAIN, a\\\.clusterset.local. next`},
		"synced, fallthrough to no plugin":       {true, true, ".", "none.demo.svc.@ NXDOMAIN"},
		"synced, fallthrough elsewhere":          {true, false, "example.org.", "none.demo.svc.@ NXDOMAIN"},
		"synced, fallthrough of the reverse":     {true, false, "in-addr.arpa.", "none.demo.svc.@ NXDOMAIN, 1.0.1.10.in-addr.arpa. next"},
	} {
		m := newReversePlugin(demo...)
		if !test.synced {
			m.index.Store(nil)
		}
		if !test.alone {
			m.Next = answering(next)
		}
		if test.fall != "" {
			m.Fall.SetZonesFromArgs([]string{test.fall})
		}
		for row := range strings.SplitSeq(strings.ReplaceAll(test.want, "@", testZone), ", ") {
			qname, want, _ := strings.Cut(row, " ")
			qtype := dns.TypeA
			if strings.HasSuffix(qname, ".arpa.") {
				qtype = dns.TypePTR
			}
			recorder := dnstest.NewRecorder(udpClient)
			rcode, err := m.ServeDNS(t.Context(), recorder, new(dns.Msg).SetQuestion(qname, qtype))
			if rcode != codes[want] || err != nil {
				t.Errorf("%s: %s: %s, %v, want %s", name, qname, dns.RcodeToString[rcode], err, want)
			}
			if want == "NXDOMAIN" && (recorder.Msg == nil || recorder.Msg.Rcode != rcode || len(recorder.Msg.Ns) != 1) {
				t.Errorf("%s: %s: the reply is %v, want NXDOMAIN with an SOA record", name, qname, recorder.Msg)
			}
			other := new(dns.Msg).SetQuestion(qname, qtype)
			other.Question[0].Qclass = dns.ClassCHAOS
			if rcode, err := m.ServeDNS(t.Context(), dnstest.NewRecorder(udpClient), other); !test.alone && (rcode != next || err != nil) {
				t.Errorf("%s: %s of another class: %s, %v", name, qname, dns.RcodeToString[rcode], err)
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"slices"
	"sort"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/fall"
	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"
)

// demo is a clusterset of east and west.eu: a ClusterSetIP service web, a headless service db, and others.
var demo = serviceImport("web", "{type: ClusterSetIP, ips: [10.42.0.1, fd00:42::1], ports: [{name: http, port: 80}, "+
	"{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]}") +
	serviceImport("v4", "{type: ClusterSetIP, ips: [10.42.0.2], ports: [{port: 8080}]}") +
	serviceImport("pending", "{type: ClusterSetIP, ports: [{name: http, port: 80}]}") +
	serviceImport("portless", "{type: ClusterSetIP, ips: [10.42.0.3], ports: []}") +
	serviceImport("db",
		"{type: Headless, ports: [{name: sql, port: 5432}, {name: stats, port: 9000, protocol: UDP}]}") +
	endpointSlice("db", "east", "IPv4", "[{name: sql, port: 5432}, {name: stats, port: 9100, protocol: UDP}, "+
		"{name: admin, port: 1}]",
		"{addresses: [10.1.0.1], hostname: db-0}", "{addresses: [10.1.0.2], hostname: db-1, conditions: {ready: true}}",
		"{addresses: [10.1.0.3], hostname: db-2, conditions: {ready: false}}") +
	endpointSlice("db", "east", "IPv6", "[{name: sql, port: 5432}]", "{addresses: ['fd00:1::1'], hostname: db-0}") +
	endpointSlice("db", "west.eu", "IPv4", "[{name: sql, port: 15432}]",
		"{addresses: [10.2.0.1]}", "{addresses: [10.2.0.1]}",
		"{addresses: [10.2.0.9], conditions: {ready: false, serving: true, terminating: true}}") +
	endpointSlice("db", "west.eu", "IPv6", "[{name: sql, port: 15432}]", "{addresses: ['fd00:2::']}") +
	serviceImport("idle", "{type: Headless, ports: [{name: sql, port: 5432}]}") +
	endpointSlice("idle", "east", "IPv4", "[{name: sql, port: 5432}]",
		"{addresses: [10.3.0.1], conditions: {ready: false}}") +
	serviceImport("draining", "{type: Headless, ports: [{name: sql, port: 5432}]}") +
	endpointSlice("draining", "east", "IPv4", "[{name: sql, port: 5432}]",
		"{addresses: [10.4.0.1], conditions: {ready: false, serving: true, terminating: true}}")

var nodata, nxdomain = records(testSOA), records(testSOA)

var cases = []test.Case{
	// The zone.
	{Qname: "clusterset.local.", Qtype: dns.TypeSOA, Answer: records(testSOA)},
	{
		Qname: "clusterset.local.", Qtype: dns.TypeNS,
		Answer: records("clusterset.local. 5 IN NS ns.dns.clusterset.local."),
		Extra: records(`ns.dns.clusterset.local. 5 IN A 192.0.2.53
			ns.dns.clusterset.local. 5 IN AAAA 2001:db8::53`),
	},
	{Qname: "clusterset.local.", Qtype: dns.TypeA, Ns: nodata},
	{
		Qname: "ns.dns.clusterset.local.", Qtype: dns.TypeA,
		Answer: records("ns.dns.clusterset.local. 5 IN A 192.0.2.53"),
	},
	{
		Qname: "ns.dns.clusterset.local.", Qtype: dns.TypeAAAA,
		Answer: records("ns.dns.clusterset.local. 5 IN AAAA 2001:db8::53"),
	},
	{Qname: "ns.dns.clusterset.local.", Qtype: dns.TypeTXT, Ns: nodata},
	{Qname: "dns.clusterset.local.", Qtype: dns.TypeA, Ns: nodata},
	{
		Qname: "dns-version.clusterset.local.", Qtype: dns.TypeTXT,
		Answer: records(`dns-version.clusterset.local. 28800 IN TXT "1.0.0"`),
	},
	{Qname: "dns-version.clusterset.local.", Qtype: dns.TypeA, Ns: nodata},
	{Qname: "a.dns-version.clusterset.local.", Qtype: dns.TypeTXT, Rcode: dns.RcodeNameError, Ns: nxdomain},

	// ClusterSetIP.
	{
		Qname: "web.demo.svc.clusterset.local.", Qtype: dns.TypeA,
		Answer: records("web.demo.svc.clusterset.local. 5 IN A 10.42.0.1"),
	},
	{
		Qname: "web.demo.svc.clusterset.local.", Qtype: dns.TypeAAAA,
		Answer: records("web.demo.svc.clusterset.local. 5 IN AAAA fd00:42::1"),
	},
	{
		Qname: "web.demo.svc.clusterset.local.", Qtype: dns.TypeSRV,
		Answer: records(`web.demo.svc.clusterset.local. 5 IN SRV 0 100 53 web.demo.svc.clusterset.local.
			web.demo.svc.clusterset.local. 5 IN SRV 0 100 80 web.demo.svc.clusterset.local.`),
		Extra: records(`web.demo.svc.clusterset.local. 5 IN A 10.42.0.1
			web.demo.svc.clusterset.local. 5 IN AAAA fd00:42::1`),
	},
	{
		Qname: "_http._tcp.web.demo.svc.clusterset.local.", Qtype: dns.TypeSRV,
		Answer: records("_http._tcp.web.demo.svc.clusterset.local. 5 IN SRV 0 100 80 web.demo.svc.clusterset.local."),
		Extra: records(`web.demo.svc.clusterset.local. 5 IN A 10.42.0.1
			web.demo.svc.clusterset.local. 5 IN AAAA fd00:42::1`),
	},
	{Qname: "_http._udp.web.demo.svc.clusterset.local.", Qtype: dns.TypeSRV, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{Qname: "_sctp.web.demo.svc.clusterset.local.", Qtype: dns.TypeSRV, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{Qname: "_udp.web.demo.svc.clusterset.local.", Qtype: dns.TypeSRV, Ns: nodata},
	{Qname: "web.demo.svc.clusterset.local.", Qtype: dns.TypeMX, Ns: nodata},
	{Qname: "v4.demo.svc.clusterset.local.", Qtype: dns.TypeAAAA, Ns: nodata},
	{
		Qname: "v4.demo.svc.clusterset.local.", Qtype: dns.TypeSRV,
		Answer: records("v4.demo.svc.clusterset.local. 5 IN SRV 0 100 8080 v4.demo.svc.clusterset.local."),
		Extra:  records("v4.demo.svc.clusterset.local. 5 IN A 10.42.0.2"),
	},
	{Qname: "_tcp.v4.demo.svc.clusterset.local.", Qtype: dns.TypeSRV, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{Qname: "pending.demo.svc.clusterset.local.", Qtype: dns.TypeA, Ns: nodata},
	{Qname: "pending.demo.svc.clusterset.local.", Qtype: dns.TypeSRV, Ns: nodata},
	{Qname: "_http._tcp.pending.demo.svc.clusterset.local.", Qtype: dns.TypeSRV, Ns: nodata},
	{Qname: "_x._tcp.pending.demo.svc.clusterset.local.", Qtype: dns.TypeSRV, Rcode: dns.RcodeNameError, Ns: nxdomain},

	// Headless.
	{
		Qname: "db.demo.svc.clusterset.local.", Qtype: dns.TypeA,
		Answer: records(`db.demo.svc.clusterset.local. 5 IN A 10.1.0.1
			db.demo.svc.clusterset.local. 5 IN A 10.1.0.2
			db.demo.svc.clusterset.local. 5 IN A 10.2.0.1`),
	},
	{
		Qname: "db.demo.svc.clusterset.local.", Qtype: dns.TypeAAAA,
		Answer: records(`db.demo.svc.clusterset.local. 5 IN AAAA fd00:1::1
			db.demo.svc.clusterset.local. 5 IN AAAA fd00:2::`),
	},
	{
		Qname: "_sql._tcp.db.demo.svc.clusterset.local.", Qtype: dns.TypeSRV,
		Answer: records(`
			_sql._tcp.db.demo.svc.clusterset.local. 5 IN SRV 0 100 5432 db-0.east.db.demo.svc.clusterset.local.
			_sql._tcp.db.demo.svc.clusterset.local. 5 IN SRV 0 100 5432 db-1.east.db.demo.svc.clusterset.local.
			_sql._tcp.db.demo.svc.clusterset.local. 5 IN SRV 0 100 15432 10-2-0-1.west.eu.db.demo.svc.clusterset.local.
			_sql._tcp.db.demo.svc.clusterset.local. 5 IN SRV 0 100 15432 fd00-2--0.west.eu.db.demo.svc.clusterset.local.`),
		Extra: records(`
			db-0.east.db.demo.svc.clusterset.local. 5 IN A 10.1.0.1
			db-0.east.db.demo.svc.clusterset.local. 5 IN AAAA fd00:1::1
			db-1.east.db.demo.svc.clusterset.local. 5 IN A 10.1.0.2
			10-2-0-1.west.eu.db.demo.svc.clusterset.local. 5 IN A 10.2.0.1
			fd00-2--0.west.eu.db.demo.svc.clusterset.local. 5 IN AAAA fd00:2::`),
	},
	{
		Qname: "_stats._udp.db.demo.svc.clusterset.local.", Qtype: dns.TypeSRV,
		Answer: records(`
			_stats._udp.db.demo.svc.clusterset.local. 5 IN SRV 0 100 9100 db-0.east.db.demo.svc.clusterset.local.
			_stats._udp.db.demo.svc.clusterset.local. 5 IN SRV 0 100 9100 db-1.east.db.demo.svc.clusterset.local.`),
		Extra: records(`
			db-0.east.db.demo.svc.clusterset.local. 5 IN A 10.1.0.1
			db-0.east.db.demo.svc.clusterset.local. 5 IN AAAA fd00:1::1
			db-1.east.db.demo.svc.clusterset.local. 5 IN A 10.1.0.2`),
	},
	{
		Qname: "db-0.east.db.demo.svc.clusterset.local.", Qtype: dns.TypeA,
		Answer: records("db-0.east.db.demo.svc.clusterset.local. 5 IN A 10.1.0.1"),
	},
	{
		Qname: "db-0.east.db.demo.svc.clusterset.local.", Qtype: dns.TypeAAAA,
		Answer: records("db-0.east.db.demo.svc.clusterset.local. 5 IN AAAA fd00:1::1"),
	},
	{Qname: "db-0.east.db.demo.svc.clusterset.local.", Qtype: dns.TypeSRV, Ns: nodata},
	{Qname: "db-1.east.db.demo.svc.clusterset.local.", Qtype: dns.TypeAAAA, Ns: nodata},
	{Qname: "db-2.east.db.demo.svc.clusterset.local.", Qtype: dns.TypeA, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{Qname: "db-0.west.eu.db.demo.svc.clusterset.local.", Qtype: dns.TypeA, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{Qname: "10-1-0-1.east.db.demo.svc.clusterset.local.", Qtype: dns.TypeA, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{
		Qname: "10-2-0-1.west.eu.db.demo.svc.clusterset.local.", Qtype: dns.TypeA,
		Answer: records("10-2-0-1.west.eu.db.demo.svc.clusterset.local. 5 IN A 10.2.0.1"),
	},
	{Qname: "10-2-0-1.west.eu.db.demo.svc.clusterset.local.", Qtype: dns.TypeAAAA, Ns: nodata},
	{Qname: "10-2-0-1.eu.db.demo.svc.clusterset.local.", Qtype: dns.TypeA, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{
		Qname: "fd00-2--0.west.eu.db.demo.svc.clusterset.local.", Qtype: dns.TypeAAAA,
		Answer: records("fd00-2--0.west.eu.db.demo.svc.clusterset.local. 5 IN AAAA fd00:2::"),
	},
	{Qname: "east.db.demo.svc.clusterset.local.", Qtype: dns.TypeA, Ns: nodata},
	{Qname: "west.eu.db.demo.svc.clusterset.local.", Qtype: dns.TypeA, Ns: nodata},
	{Qname: "eu.db.demo.svc.clusterset.local.", Qtype: dns.TypeA, Ns: nodata},
	{Qname: "west.db.demo.svc.clusterset.local.", Qtype: dns.TypeA, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{Qname: "a.b.c.d.db.demo.svc.clusterset.local.", Qtype: dns.TypeA, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{Qname: "_tcp.db.demo.svc.clusterset.local.", Qtype: dns.TypeA, Ns: nodata},
	{Qname: "_sctp.db.demo.svc.clusterset.local.", Qtype: dns.TypeA, Rcode: dns.RcodeNameError, Ns: nxdomain},

	// Names above services, and names that are not.
	{Qname: "svc.clusterset.local.", Qtype: dns.TypeA, Ns: nodata},
	{Qname: "demo.svc.clusterset.local.", Qtype: dns.TypeA, Ns: nodata},
	{Qname: "other.svc.clusterset.local.", Qtype: dns.TypeA, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{Qname: "web.other.svc.clusterset.local.", Qtype: dns.TypeA, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{Qname: "none.demo.svc.clusterset.local.", Qtype: dns.TypeA, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{Qname: "*.demo.svc.clusterset.local.", Qtype: dns.TypeA, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{Qname: "a.clusterset.local.", Qtype: dns.TypeA, Rcode: dns.RcodeNameError, Ns: nxdomain},
	{Qname: "web.demo.clusterset.local.", Qtype: dns.TypeA, Rcode: dns.RcodeNameError, Ns: nxdomain},
}

func TestAnswers(t *testing.T) {
	m := newTestPlugin(t, demo)
	for _, tc := range cases {
		t.Run(dns.TypeToString[tc.Qtype]+" "+tc.Qname, func(t *testing.T) { check(t, m, tc) })
	}
}

// check compares the reply to a query with what is expected of it.
func check(t *testing.T, m *Multicluster, tc test.Case) {
	t.Helper()
	r := tc.Msg()
	r.SetEdns0(4096, tc.Do)
	reply := ask(t, m, r, &test.ResponseWriter{})
	if reply.Question[0] != r.Question[0] {
		t.Errorf("the question came back as %v", reply.Question[0])
	}
	if !reply.Response || !reply.Authoritative {
		t.Errorf("response %v, authoritative %v, want both", reply.Response, reply.Authoritative)
	}
	if reply.Rcode != tc.Rcode || reply.Truncated != tc.Truncated {
		t.Errorf("rcode %s, truncated %v, want %s, %v", dns.RcodeToString[reply.Rcode], reply.Truncated,
			dns.RcodeToString[tc.Rcode], tc.Truncated)
	}
	for _, section := range []struct {
		name      string
		got, want []dns.RR
	}{{"answer", reply.Answer, tc.Answer}, {"authority", reply.Ns, tc.Ns}, {"additional", reply.Extra, tc.Extra}} {
		got, want := sorted(section.got), sorted(section.want)
		if !slices.Equal(got, want) {
			t.Errorf("%s section is\n%q\nwant\n%q", section.name, got, want)
		}
	}
}

func TestNamesCompareWithoutCaseAndTheQuestionIsEchoed(t *testing.T) {
	m := newTestPlugin(t, demo)
	for _, tc := range []struct {
		name  string
		qtype uint16
		want  int
	}{
		{"WEB.Demo.SVC.ClusterSet.LOCAL.", dns.TypeA, 1},
		{"_HTTP._Tcp.Web.demo.svc.clusterset.local.", dns.TypeSRV, 1},
		{"DB.demo.svc.clusterset.local.", dns.TypeA, 3},
		{"_SQL._TCP.DB.Demo.svc.clusterset.local.", dns.TypeSRV, 4},
		{"DB-0.EAST.db.demo.svc.clusterset.local.", dns.TypeA, 1},
		{"FD00-2--0.West.EU.db.demo.svc.clusterset.local.", dns.TypeAAAA, 1},
		{"DNS-Version.clusterset.local.", dns.TypeTXT, 1},
		{"NS.DNS.clusterset.local.", dns.TypeA, 1},
	} {
		reply := ask(t, m, new(dns.Msg).SetQuestion(tc.name, tc.qtype), &test.ResponseWriter{})
		if len(reply.Answer) != tc.want {
			t.Errorf("%s: %d records, want %d", tc.name, len(reply.Answer), tc.want)
		}
		if reply.Question[0].Name != tc.name {
			t.Errorf("%s came back as %s", tc.name, reply.Question[0].Name)
		}
	}
}

// The examples of the specification have the cluster ids clusterA and clusterB.
func TestClusterIDsCanHaveCapitals(t *testing.T) {
	m := newReversePlugin(t, serviceImport("db", "{type: Headless, ports: [{name: sql, port: 5432}]}")+
		endpointSlice("db", "clusterA", "IPv4", "[{name: sql, port: 5432}]",
			"{addresses: [10.3.0.100], hostname: my-pet-1}"))
	const host = "my-pet-1.clustera.db.demo.svc.clusterset.local."
	for _, tc := range []struct {
		name  string
		qtype uint16
		want  string
	}{
		{"my-pet-1.clusterA.db.demo.svc.clusterset.local.", dns.TypeA, "A 10.3.0.100"},
		{"_sql._tcp.db.demo.svc.clusterset.local.", dns.TypeSRV, "SRV 0 100 5432 " + host},
		{"100.0.3.10.in-addr.arpa.", dns.TypePTR, "PTR " + host},
	} {
		want := sorted(records(tc.name + " 5 IN " + tc.want))
		reply := ask(t, m, new(dns.Msg).SetQuestion(tc.name, tc.qtype), udpClient)
		if got := sorted(reply.Answer); !slices.Equal(got, want) {
			t.Errorf("%s: %s, %q, want %q", tc.name, dns.RcodeToString[reply.Rcode], got, want)
		}
	}
}

func TestBeforeTheFirstSyncThereIsServfailInTheZoneAndNowhereElse(t *testing.T) {
	const passed, failed, none = dns.RcodeBadName, dns.RcodeServerFailure, dns.RcodeNameError
	const service, other, apex, above = "web.demo.svc.clusterset.local.", "web.demo.svc.cluster.local.", testZone,
		"svc." + testZone
	next := test.NextHandler(passed, nil)
	for name, tc := range map[string]struct {
		fall  fall.F
		next  plugin.Handler
		wants map[string]int
	}{
		"without fallthrough": {fall.Zero, next, map[string]int{
			service: failed, apex: failed, above: failed,
			other: passed,
		}},
		"fallthrough": {fall.Root, next, map[string]int{
			service: passed, apex: failed, above: failed,
			other: passed,
		}},
		"fallthrough to no plugin": {fall.Root, nil, map[string]int{service: none, apex: failed, above: failed}},
		"fallthrough of other zone": {
			fall.F{Zones: []string{"example.org."}},
			next,
			map[string]int{service: failed, other: passed},
		},
	} {
		m := newMulticluster()
		m.Zones, m.Next, m.Fall = []string{testZone}, tc.next, tc.fall
		for qname, want := range tc.wants {
			recorder := dnstest.NewRecorder(&test.ResponseWriter{})
			rcode, err := m.ServeDNS(t.Context(), recorder, new(dns.Msg).SetQuestion(qname, dns.TypeA))
			if rcode != want || err != nil {
				t.Errorf("%s: %s: %s, %v, want %s", name, qname, dns.RcodeToString[rcode], err, dns.RcodeToString[want])
			}
			if want == none && (recorder.Msg == nil || recorder.Msg.Rcode != none || len(recorder.Msg.Ns) > 0) {
				t.Errorf("%s: %s: the reply is %v, want NXDOMAIN without an SOA record", name, qname, recorder.Msg)
			}
		}
	}
}

func TestFallthroughWithoutAnotherPluginIsNXDOMAIN(t *testing.T) {
	m := newTestPlugin(t, demo)
	m.Fall = fall.Root
	reply := ask(t, m, new(dns.Msg).SetQuestion("none.demo.svc.clusterset.local.", dns.TypeA), udpClient)
	if reply.Rcode != dns.RcodeNameError || len(reply.Ns) != 1 {
		t.Errorf("the reply is %v", reply)
	}
}

func TestFallthroughPassesOnWhatDoesNotExist(t *testing.T) {
	m := newTestPlugin(t, demo)
	const passed = dns.RcodeBadName // what no zone answers
	m.Next = test.NextHandler(passed, nil)
	m.Fall.SetZonesFromArgs(nil)
	for qname, want := range map[string]int{
		"web.demo.svc.clusterset.local.":  dns.RcodeSuccess,
		"demo.svc.clusterset.local.":      dns.RcodeSuccess,
		"none.demo.svc.clusterset.local.": passed,
		"a.clusterset.local.":             passed,
		"web.demo.svc.cluster.local.":     passed,
	} {
		r := new(dns.Msg).SetQuestion(qname, dns.TypeA)
		rcode, err := m.ServeDNS(t.Context(), dnstest.NewRecorder(&test.ResponseWriter{}), r)
		if rcode != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", qname, rcode, err, want)
		}
	}
	m.Fall.SetZonesFromArgs([]string{"example.org"})
	r := new(dns.Msg).SetQuestion("none.demo.svc.clusterset.local.", dns.TypeA)
	if rcode, _ := m.ServeDNS(t.Context(), dnstest.NewRecorder(&test.ResponseWriter{}),
		r); rcode != dns.RcodeNameError {
		t.Errorf("a name outside of the zones that fall through: %d", rcode)
	}
}

func TestTheAnswerDoesNotDependOnTheOrderOfSlices(t *testing.T) {
	all := readObjects(t, demo)
	m := newTestPlugin(t, demo)
	before := zoneOf(m)
	for range all.slices {
		all.slices = append(all.slices[1:], all.slices[0])
		for _, slice := range all.slices {
			slices.Reverse(slice.Endpoints)
			slices.Reverse(slice.Ports)
		}
		sort.Slice(all.imports, func(i, j int) bool { return all.imports[i].Name > all.imports[j].Name })
		serve(m, all)
		if got, want := zoneOf(m), before; !slices.Equal(got, want) {
			t.Fatalf("another order gave\n%q\nwant\n%q", got, want)
		}
	}
}

func TestAnotherClassIsForOtherPlugins(t *testing.T) {
	m := newTestPlugin(t, demo)
	m.Next = test.NextHandler(dns.RcodeRefused, nil)
	r := new(dns.Msg).SetQuestion("web.demo.svc.clusterset.local.", dns.TypeA)
	r.Question[0].Qclass = dns.ClassCHAOS
	if rcode, err := m.ServeDNS(t.Context(), dnstest.NewRecorder(&test.ResponseWriter{}),
		r); rcode != dns.RcodeRefused || err != nil {
		t.Errorf("%s, %v", dns.RcodeToString[rcode], err)
	}
}

func TestMatch(t *testing.T) {
	tests := []struct {
		name, zone, below string
		in                bool
	}{
		{"clusterset.local.", "clusterset.local.", "", true},
		{"CLUSTERSET.local.", "clusterset.local.", "", true},
		{"web.demo.svc.clusterset.local.", "clusterset.local.", "web.demo.svc", true},
		{"Web.Demo.Svc.ClusterSet.Local.", "clusterset.local.", "Web.Demo.Svc", true},
		{"notclusterset.local.", "clusterset.local.", "", false},
		{"local.", "clusterset.local.", "", false},
		{".", "clusterset.local.", "", false},
		{`a\.clusterset.local.`, "clusterset.local.", "", false},
		{`a\\.clusterset.local.`, "clusterset.local.", `a\\`, true},
		{`a\\\.clusterset.local.`, "clusterset.local.", "", false},
		{".", ".", "", true},
		{"web.demo.svc.", ".", "web.demo.svc", true},
	}
	for _, tc := range tests {
		m := newMulticluster()
		m.Zones = []string{tc.zone}
		if zone, below := m.match(tc.name); below != tc.below || (zone == 0) != tc.in {
			t.Errorf("%q in %q: got zone %d, %q, want %q, %v", tc.name, tc.zone, zone, below, tc.below, tc.in)
		}
	}
}

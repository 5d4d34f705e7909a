// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"regexp"
	"testing"

	"github.com/miekg/dns"
)

// demo is a clusterset of east and west.eu.
var demo = serviceImport("web", "{type: ClusterSetIP, ips: [10.42.0.1, 'fd00:42::1'], ports: ["+
	"{name: http, port: 80, protocol: TCP}]}") +
	serviceImport("portless", "{type: ClusterSetIP, ips: [10.42.0.3], ports: []}") +
	serviceImport("pending", "{type: ClusterSetIP, ports: [{name: http, port: 80}]}") +
	serviceImport("db", "{type: Headless, ports: [{name: sql, port: 5432}]}") +
	endpointSlice("web", "east", "IPv4", "[{name: http, port: 8080}]", "{addresses: [10.1.0.80], hostname: web-0}") +
	endpointSlice("db", "east", "IPv4", "[{name: sql, port: 5432}, {name: admin, port: 1}]",
		"{addresses: [10.1.0.1], hostname: db-0}", "{addresses: [10.1.0.2], conditions: {ready: false}}") +
	endpointSlice("db", "east", "IPv6", "[{name: sql, port: 5432}]", "{addresses: ['fd00:1::1'], hostname: db-0}") +
	endpointSlice("db", "west.eu", "IPv4", "[{name: sql, port: 15432}]", "{addresses: [10.2.0.1]}")

// difference is an answer that is not that of CoreDNS's plugin kubernetes, and the line of the specification that
// decides it.
type difference struct{ query, stock, why string }

// queries are put to both plugins, and differences are where they answer otherwise.
var (
	queries = []struct {
		qname string
		qtype uint16
		want  string
	}{
		{"dns-version", dns.TypeTXT, `"1.0.0"`},
		{"web.demo.svc", dns.TypeA, "10.42.0.1"},
		{"web.demo.svc", dns.TypeAAAA, "fd00:42::1"},
		{"web.demo.svc", dns.TypeSRV, "0 100 80 web.demo.svc.clusterset.local."},
		{"_http._tcp.web.demo.svc", dns.TypeSRV, "0 100 80 web.demo.svc.clusterset.local."},
		{"_http._tcp.web.demo.svc", dns.TypeA, "NODATA"},
		{"_tcp.web.demo.svc", dns.TypeSRV, "NODATA"},
		{"http._tcp.web.demo.svc", dns.TypeSRV, "NXDOMAIN"},
		{"web-0.east.web.demo.svc", dns.TypeA, "NXDOMAIN"},
		{"portless.demo.svc", dns.TypeA, "10.42.0.3"},
		{"pending.demo.svc", dns.TypeA, "NODATA"},
		{"db.demo.svc", dns.TypeA, "10.1.0.1 10.2.0.1"},
		{"db.demo.svc", dns.TypeAAAA, "fd00:1::1"},
		{"_sql._tcp.db.demo.svc", dns.TypeSRV, "0 100 15432 10-2-0-1.west.eu.db.demo.svc.clusterset.local. " +
			"0 100 5432 db-0.east.db.demo.svc.clusterset.local."},
		{"_admin._tcp.db.demo.svc", dns.TypeSRV, "NXDOMAIN"},
		{"db-0.east.db.demo.svc", dns.TypeA, "10.1.0.1"},
		{"db-0.east.db.demo.svc", dns.TypeAAAA, "fd00:1::1"},
		{"10-1-0-2.east.db.demo.svc", dns.TypeA, "NXDOMAIN"},
		{"10-2-0-1.west.eu.db.demo.svc", dns.TypeA, "10.2.0.1"},
		{"east.db.demo.svc", dns.TypeA, "NODATA"},
		{"eu.db.demo.svc", dns.TypeA, "NODATA"},
		{"svc", dns.TypeA, "NODATA"},
		{"demo.svc", dns.TypeA, "NODATA"},
		{"none.demo.svc", dns.TypeA, "NXDOMAIN"},
		{"web.none.svc", dns.TypeA, "NXDOMAIN"},
		{"10-1-0-1.demo.pod", dns.TypeA, "NXDOMAIN"},
	}
	differences = []difference{
		{"dns-version TXT", `"1.1.0"`, "dns-version: the version of the multicluster specification is 1.0.0"},
		{"_http._tcp.web.demo.svc A", "10.42.0.1", "_<port>._<proto> of a ClusterSetIP service: SRV"},
		{"_tcp.web.demo.svc SRV", "NXDOMAIN", "NODATA: the names above a name that exists"},
		{"http._tcp.web.demo.svc SRV", "80 web.demo.svc.clusterset.local.", "a port's name begins with _, and so does its protocol's"},
		{"web-0.east.web.demo.svc A", "10.1.0.80", "<host>.<cluster>: headless services"},
		{"portless.demo.svc A", "NXDOMAIN", "an import without ports has its addresses"},
		{"_admin._tcp.db.demo.svc SRV", "1 db-0.east.db.demo.svc.clusterset.local.", "headless ports are those that the import declares"},
		{"10-2-0-1.west.eu.db.demo.svc A", "NXDOMAIN", "<cluster>: one label or two"},
		{"east.db.demo.svc A", "NXDOMAIN", "NODATA: the names above a name that exists"},
		{"eu.db.demo.svc A", "NXDOMAIN", "NODATA: the names above a name that exists"},
	}
)

func TestAnswersBesideThoseOfCoreDNS(t *testing.T) {
	cluster := clusters(t)[0]
	namespace(t, cluster, "demo").apply(demo)
	config := admin(t, cluster)
	stock, ours := serve(t, stockCorefile(config, patient)), serve(t, corefile(config, patient))
	listed := map[string]difference{}
	for _, d := range differences {
		listed[d.query] = d
	}
	for _, q := range queries {
		label := q.qname + " " + dns.TypeToString[q.qtype]
		t.Run(label, func(t *testing.T) {
			for _, network := range []string{"udp", "tcp"} {
				for _, size := range []uint16{0, 1232} {
					r := new(dns.Msg).SetQuestion(q.qname+".clusterset.local.", q.qtype)
					if size > 0 {
						r.SetEdns0(size, false)
					}
					if got := textOf(ours.exchange(network, r)); got != q.want {
						t.Errorf("over %s, EDNS %d: %s, want %s", network, size, got, q.want)
					}
				}
			}
			theirs := unweighted(stock.answers(q.qname+".clusterset.local.", q.qtype))
			d, differs := listed[label]
			switch {
			case theirs == unweighted(q.want) && differs:
				t.Errorf("the kubernetes plugin answers alike, and is listed to differ: %s", d.why)
			case theirs != unweighted(q.want) && d.stock != theirs:
				t.Errorf("the kubernetes plugin answers %s, which is not listed", theirs)
			}
		})
	}
}

// priorityAndWeight begin the data of an SRV record. The specification leaves them open.
var priorityAndWeight = regexp.MustCompile(`\b0 \d+ (\d+ [a-z0-9-]+\.)`)

func unweighted(text string) string { return priorityAndWeight.ReplaceAllString(text, "$1") }

// SPDX-License-Identifier: Apache-2.0

package multicluster

import "testing"

const (
	reverse4 = "10.in-addr.arpa."
	reverse6 = "d.f.ip6.arpa."
	zeros    = "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0."
)

// newReversePlugin returns a plugin that serves the services and reverse zones in the cluster east.
func newReversePlugin(services ...service) *Multicluster {
	m := newTestPlugin()
	m.config.Zones, m.config.Reverse, m.config.Cluster = append(m.config.Zones, reverse4, reverse6), 2, "east"
	m.setAddresses(addresses)
	m.serve(services)
	return m
}

const (
	dbHost = ".west.eu.db.demo.svc.clusterset.local."
	fd00   = zeros + "2.0.0.0.0.0." + reverse6
	fd42   = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.2.4.0.0.0.0." + reverse6
)

// reverseCases are queries for reverse zones of demo in east: 10.1.0.1 is in the local cluster, and no endpoint has 10.7.7.7.
var reverseCases = readCases(`
	PTR 1.0.2.10.in-addr.arpa. = 10-2-0-1` + dbHost + `
	PTR 9.0.2.10.in-addr.arpa. = 10-2-0-9` + dbHost + // the host has no ready endpoint, so its name resolves to this address
	`
	PTR ` + fd00 + ` = fd00-2--0` + dbHost + `
	A 1.0.2.10.in-addr.arpa.
	PTR 2.10.in-addr.arpa.
	NS 0.d.f.ip6.arpa.
	PTR 1.0.42.10.in-addr.arpa. = web.demo.svc.@
	PTR ` + fd42 + ` = web.demo.svc.@
	PTR 1.0.1.10.in-addr.arpa. !
	PTR 7.7.7.10.in-addr.arpa. !
	TXT dns-version.10.in-addr.arpa. !
	SOA 10.in-addr.arpa. = ns.dns.@ hostmaster.@ 1800000000 7200 1800 86400 5
	NS d.f.ip6.arpa. = ns.dns.@ + ns.dns.@ A 192.0.2.53, ns.dns.@ AAAA 2001:db8::53
	PTR 10.in-addr.arpa.`)

func TestReverseZones(t *testing.T) {
	m := newReversePlugin(demo...)
	for _, tc := range reverseCases {
		check(t, m, tc)
	}
}

// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"slices"
	"testing"

	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"
)

const (
	reverse4 = "10.in-addr.arpa."
	reverse6 = "d.f.ip6.arpa."
	// between fd00:2::'s first 32 bits and its last digit
	zeros = "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0."
)

// newReversePlugin serves the objects, and reverse zones, in the cluster east.
func newReversePlugin(t *testing.T, text string) *Multicluster {
	t.Helper()
	m := newTestPlugin(t, "")
	m.Reverse, m.cluster = []string{reverse4, reverse6}, "east"
	m.Zones = append(m.Zones, m.Reverse...)
	m.setAddresses(nil)
	serve(t, m, text)
	return m
}

func TestReverseZones(t *testing.T) {
	const db = ".west.eu.db.demo.svc.clusterset.local."
	fd00 := zeros + "2.0.0.0.0.0." + reverse6
	fd42 := "1." + zeros[2:] + "2.4.0.0.0.0." + reverse6
	m := newReversePlugin(t, demo)
	for _, tc := range readCases(`
		PTR 1.0.2.10.in-addr.arpa. = 10-2-0-1` + db + `
		PTR 1.0.2.10.IN-addr.arpa. = 10-2-0-1` + db + `
		PTR 9.0.2.10.in-addr.arpa. = 10-2-0-9` + db + // its name has no ready endpoint, so that it resolves to this one
		`
		PTR ` + fd00 + ` = fd00-2--0` + db + `
		A 1.0.2.10.in-addr.arpa.
		PTR 2.10.in-addr.arpa.
		NS 0.d.f.ip6.arpa.
		PTR 1.0.42.10.in-addr.arpa. = web.demo.svc.@
		PTR ` + fd42 + ` = web.demo.svc.@
		PTR 42.10.in-addr.arpa.
		PTR 1.0.1.10.in-addr.arpa. !
		PTR 7.7.7.10.in-addr.arpa. !
		PTR 1.1.0.2.10.in-addr.arpa. !
		TXT dns-version.10.in-addr.arpa. !
		SOA 10.in-addr.arpa. = ns.dns.@ hostmaster.@ 1800000000 7200 1800 86400 5
		NS d.f.ip6.arpa. = ns.dns.@
		PTR 10.in-addr.arpa.`) { // 10.1.0.1 is the local cluster's, and 10.7.7.7 nobody's
		if err := test.SortAndCheck(ask(t, m, tc.Msg(), udpClient), tc); err != nil {
			t.Errorf("%s %s: %v", tc.Qname, dns.TypeToString[tc.Qtype], err)
		}
	}
}

func TestReverseZonesAreTransferred(t *testing.T) {
	m := newReversePlugin(t, demo)
	const db = ".west.eu.db.demo.svc.clusterset.local."
	fd00, fd42 := zeros+"2.0.0.0.0.0."+reverse6, "1."+zeros[2:]+"2.4.0.0.0.0."+reverse6
	for zone, want := range map[string]string{
		reverse4: "1.0.2.10.in-addr.arpa. 5 IN PTR 10-2-0-1" + db + "\n9.0.2.10.in-addr.arpa. 5 IN PTR 10-2-0-9" + db +
			"\n1.0.42.10.in-addr.arpa. 5 IN PTR web.demo.svc.clusterset.local." +
			"\n2.0.42.10.in-addr.arpa. 5 IN PTR v4.demo.svc.clusterset.local." +
			"\n3.0.42.10.in-addr.arpa. 5 IN PTR portless.demo.svc.clusterset.local.",
		reverse6: fd00 + " 5 IN PTR fd00-2--0" + db + "\n" + fd42 + " 5 IN PTR web.demo.svc.clusterset.local.",
	} {
		sent, err := m.Transfer(zone, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []dns.RR
		for some := range sent {
			got = append(got, some...)
		}
		soa := zone + testSOA + "\n"
		if want := sorted(records(soa + soa + zone + " 5 IN NS ns.dns.clusterset.local.\n" + want)); !slices.Equal(
			sorted(got), want) {
			t.Errorf("the transfer of %s is\n%q\nwant\n%q", zone, sorted(got), want)
		}
	}
}

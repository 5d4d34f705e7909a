// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"slices"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"
)

const (
	reverse4   = "10.in-addr.arpa."
	reverse6   = "d.f.ip6.arpa."
	reverseSOA = " 5 IN SOA ns.dns.clusterset.local. hostmaster.clusterset.local. 1800000000 7200 1800 86400 5"
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
	serve(m, readObjects(t, text))
	return m
}

func TestReverseZones(t *testing.T) {
	const db = ".west.eu.db.demo.svc.clusterset.local."
	fd00 := zeros + "2.0.0.0.0.0." + reverse6
	fd42 := "1." + zeros[2:] + "2.4.0.0.0.0." + reverse6
	nodata4, nodata6 := records(reverse4+reverseSOA), records(reverse6+reverseSOA)
	m := newReversePlugin(t, demo)
	for _, tc := range []test.Case{
		{
			Qname: "1.0.2.10.in-addr.arpa.", Qtype: dns.TypePTR,
			Answer: records("1.0.2.10.in-addr.arpa. 5 IN PTR 10-2-0-1" + db),
		},
		{
			Qname: "1.0.2.10.IN-addr.arpa.", Qtype: dns.TypePTR,
			Answer: records("1.0.2.10.IN-addr.arpa. 5 IN PTR 10-2-0-1" + db),
		},
		// Its name has no ready endpoint, so that it resolves to this one.
		{
			Qname: "9.0.2.10.in-addr.arpa.", Qtype: dns.TypePTR,
			Answer: records("9.0.2.10.in-addr.arpa. 5 IN PTR 10-2-0-9" + db),
		},
		{Qname: fd00, Qtype: dns.TypePTR, Answer: records(fd00 + " 5 IN PTR fd00-2--0" + db)},
		{Qname: "1.0.2.10.in-addr.arpa.", Qtype: dns.TypeA, Ns: nodata4},
		{Qname: "2.10.in-addr.arpa.", Qtype: dns.TypePTR, Ns: nodata4},
		{Qname: "0.d.f.ip6.arpa.", Qtype: dns.TypeNS, Ns: nodata6},
		{
			Qname: "1.0.42.10.in-addr.arpa.", Qtype: dns.TypePTR,
			Answer: records("1.0.42.10.in-addr.arpa. 5 IN PTR web.demo.svc.clusterset.local."),
		},
		{Qname: fd42, Qtype: dns.TypePTR, Answer: records(fd42 + " 5 IN PTR web.demo.svc.clusterset.local.")},
		{Qname: "42.10.in-addr.arpa.", Qtype: dns.TypePTR, Ns: nodata4},
		// The local cluster's, and one that nobody has.
		{Qname: "1.0.1.10.in-addr.arpa.", Qtype: dns.TypePTR, Rcode: dns.RcodeNameError, Ns: nodata4},
		{Qname: "7.7.7.10.in-addr.arpa.", Qtype: dns.TypePTR, Rcode: dns.RcodeNameError, Ns: nodata4},
		{Qname: "1.1.0.2.10.in-addr.arpa.", Qtype: dns.TypePTR, Rcode: dns.RcodeNameError, Ns: nodata4},
		{Qname: "dns-version.10.in-addr.arpa.", Qtype: dns.TypeTXT, Rcode: dns.RcodeNameError, Ns: nodata4},
		{Qname: reverse4, Qtype: dns.TypeSOA, Answer: nodata4},
		{Qname: reverse6, Qtype: dns.TypeNS, Answer: records(reverse6 + " 5 IN NS ns.dns.clusterset.local.")},
		{Qname: reverse4, Qtype: dns.TypePTR, Ns: nodata4},
	} {
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
		soa := zone + reverseSOA + "\n"
		if want := sorted(records(soa + soa + zone + " 5 IN NS ns.dns.clusterset.local.\n" + want)); !slices.Equal(
			sorted(got), want) {
			t.Errorf("the transfer of %s is\n%q\nwant\n%q", zone, sorted(got), want)
		}
	}
}

func TestAddressesThatAreNotRemoteEndpointsFallThrough(t *testing.T) {
	for _, synced := range []bool{true, false} {
		m := newReversePlugin(t, demo)
		if !synced {
			m.index.Store(nil)
		}
		local := new(dns.Msg).SetQuestion("1.0.1.10.in-addr.arpa.", dns.TypePTR)
		want := dns.RcodeNameError
		if !synced {
			want = dns.RcodeServerFailure
		}
		if got := ask(t, m, local, udpClient).Rcode; got != want {
			t.Errorf("synced %v: without fallthrough it is answered with %s", synced, dns.RcodeToString[got])
		}
		m.Fall.SetZonesFromArgs([]string{"in-addr.arpa"})
		m.Next = plugin.HandlerFunc(test.NextHandler(dns.RcodeBadCookie, nil).ServeDNS)
		if got := ask(t, m, local, udpClient).Rcode; got != dns.RcodeBadCookie {
			t.Errorf("synced %v: with fallthrough it is answered with %s", synced, dns.RcodeToString[got])
		}
		if synced {
			continue
		}
		forward := new(dns.Msg).SetQuestion("web.demo.svc."+testZone, dns.TypeA)
		if got := ask(t, m, forward, udpClient).Rcode; got != dns.RcodeServerFailure {
			t.Errorf("a forward name is answered with %s before the first list", dns.RcodeToString[got])
		}
	}
}

func TestAnAddressOfSeveralServicesHasOneName(t *testing.T) {
	db := serviceImport("db", "{type: Headless, ports: []}") +
		endpointSlice("db", "west", "IPv4", "[]", "{addresses: [10.2.0.1], hostname: b}",
			"{addresses: [10.2.0.1], hostname: a}")
	cache := serviceImport("cache", "{type: Headless, ports: []}") +
		endpointSlice("cache", "west", "IPv4", "[]", "{addresses: [10.2.0.1], hostname: a}")
	for _, text := range []string{db + cache, cache + db} {
		m := newReversePlugin(t, text)
		name := func() string {
			reply := ask(t, m, new(dns.Msg).SetQuestion("1.0.2.10.in-addr.arpa.", dns.TypePTR), udpClient)
			if len(reply.Answer) != 1 {
				t.Fatalf("the answer is %v", reply.Answer)
			}
			return reply.Answer[0].(*dns.PTR).Ptr
		}
		if got := name(); got != "a.west.cache.demo.svc.clusterset.local." {
			t.Errorf("the name is %s", got)
		}
		all := readObjects(t, cache)
		all.slices = nil
		m.index.Load().Update(uint32(time.Now().Unix()), all.services(m.config()))
		if got := name(); got != "a.west.db.demo.svc.clusterset.local." {
			t.Errorf("without the first service the name is %s", got)
		}
	}
}

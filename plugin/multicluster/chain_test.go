// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/transfer"
	"github.com/miekg/dns"

	// Only the plugins of the Corefiles below: all plugins of CoreDNS are twice as many packages to compile.
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/dns64"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/header"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/metadata"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/minimal"
	_ "github.com/coredns/coredns/plugin/rewrite"
)

// testPlugin is a plugin that adds inChain to the plugin chain of a Corefile.
const testPlugin = "multiclustertest"

var inChain *Multicluster

func init() {
	caddy.Quiet, dnsserver.Quiet = true, true
	dnsserver.Directives = slices.Insert(slices.Clone(dnsserver.Directives),
		slices.Index(dnsserver.Directives, "kubernetes"), pluginName, testPlugin)
	plugin.Register(testPlugin, func(c *caddy.Controller) error {
		c.Next()
		m := inChain
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler {
			m.Next = next
			return m
		})
		return nil
	})
}

// startChain starts a server with m in its chain, and returns its addresses.
func startChain(t *testing.T, m *Multicluster, plugins string) (udp, tcp string) {
	t.Helper()
	inChain = m
	instance, err := caddy.Start(caddy.CaddyfileInput{
		Filepath: "Corefile", ServerTypeName: "dns",
		Contents: []byte(".:0 {\n bind 127.0.0.1\n" + plugins + "\n" + testPlugin + "\n}"),
	})
	must(t, err)
	t.Cleanup(func() { shutDown(t, instance) })
	server := instance.Servers()[0]
	return server.LocalAddr().String(), server.Addr().String()
}

// shutDown stops the servers of a Corefile.
func shutDown(t *testing.T, instance *caddy.Instance) {
	for _, err := range instance.ShutdownCallbacks() {
		t.Error(err)
	}
	if err := instance.Stop(); err != nil {
		t.Error(err)
	}
}

// manipulators are plugins that change or cache replies.
const manipulators = `
	metadata
	prometheus 127.0.0.1:0
	errors
	log
	dns64
	loadbalance
	rewrite {
		ttl suffix clusterset.local. 7-9
	}
	rewrite name suffix .rewritten. .clusterset.local. answer auto
	cache 5
	header {
		response set ra
	}
	minimal
	transfer {
		to *
	}`

func TestPluginsBesideItNeverChangeSharedRecords(t *testing.T) {
	m := newTestPlugin(demo...)
	shared := func() []string {
		return slices.Concat(zoneOf(m), sorted(m.apexes[0].Records()), sorted(m.index.Load().State().SOA(0)))
	}
	before := shared()
	udp, _ := startChain(t, m, manipulators)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() { askAll(t, udp) })
	}
	running.Wait()
	if after := shared(); !slices.Equal(before, after) {
		t.Fatalf("the records are\n%q\nand were\n%q", after, before)
	}
}

// patience limits the wait for an answer.
const patience = time.Minute

// askAll sends all test cases to a server several times, in turns with DNSSEC and without.
func askAll(t *testing.T, server string) {
	client := dns.Client{Timeout: patience}
	for i, tc := range slices.Repeat(cases, 3) {
		r := new(dns.Msg).SetQuestion(tc.Qname, tc.Qtype).SetEdns0(4096, i%2 == 0)
		if _, _, err := client.ExchangeContext(t.Context(), r, server); err != nil {
			t.Errorf("%s: %v", tc.Qname, err)
		}
	}
}

// TestATransferIsWhatQueriesAnswer: transfers ignore maxAnswers, and IXFR does not resend a zone that the client has.
func TestATransferIsWhatQueriesAnswer(t *testing.T) {
	m := newReversePlugin(demo...)
	_, tcp := startChain(t, m, "transfer {\n to *\n}")
	transferred := func(r *dns.Msg) (all []dns.RR) {
		t.Helper()
		envelopes, err := (&dns.Transfer{DialTimeout: patience, ReadTimeout: patience}).In(r, tcp)
		must(t, err)
		for envelope := range envelopes {
			if envelope.Error != nil {
				t.Fatal(envelope.Error)
			}
			all = append(all, envelope.RR...)
		}
		return all
	}
	m.maxAnswers = 1
	sets := map[dns.Question][]dns.RR{}
	for _, zone := range m.config.Zones {
		all := transferred(new(dns.Msg).SetAxfr(zone))
		if all[0].Header().Rrtype != dns.TypeSOA || all[len(all)-1].Header().Rrtype != dns.TypeSOA {
			t.Errorf("the transfer of %s does not begin and end with the SOA record", zone)
		}
		for serial, want := range map[uint32]int{testTime - 1: len(all), testTime: 1, testTime + 1: 1} {
			if got := transferred(new(dns.Msg).SetIxfr(strings.ToUpper(zone), serial, ".", ".")); len(got) != want {
				t.Errorf("for a client with serial %d of %s there are %d records, want %d", serial, zone, len(got), want)
			}
		}
		for _, rr := range all[1:] {
			question := dns.Question{Name: rr.Header().Name, Qtype: rr.Header().Rrtype}
			sets[question] = append(sets[question], rr)
		}
	}
	for _, tc := range slices.Concat(cases, reverseCases) {
		set := sets[dns.Question{Name: tc.Qname, Qtype: tc.Qtype}]
		if got, want := sorted(set), sorted(tc.Answer); !slices.Equal(got, want) {
			t.Errorf("%s %s is answered with\n%q\nand transferred as\n%q", tc.Qname, dns.TypeToString[tc.Qtype], want, got)
		}
	}
	if _, err := m.Transfer("example.org.", 0); !errors.Is(err, transfer.ErrNotAuthoritative) { // the next plugin is asked
		t.Errorf("a transfer of a zone of others: %v", err)
	}
	m.index.Store(nil)
	if _, err := m.Transfer(testZone, 0); err == nil {
		t.Error("a zone is transferred before its objects were listed")
	}
}

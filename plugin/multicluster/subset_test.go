// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/proxyproto"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record/recordtest"
	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

// many returns the service db with count endpoints in each of two clusters.
func many(count int) service { return service{"db", recordtest.SQL, recordtest.Many(count, false)} }

// TestReplicasAnswerAClientWithTheSameEndpoints, also if it comes through a proxy. That A and AAAA have the same hosts is
// tested in package record.
func TestReplicasAnswerAClientWithTheSameEndpoints(t *testing.T) {
	replicas := []*Multicluster{newTestPlugin(many(100)), newTestPlugin(many(100))}
	subsets := map[string]bool{}
	for i := range byte(50) {
		var answers []string
		for which, client := range []net.Addr{
			&net.UDPAddr{IP: net.IPv4(192, 0, 2, i).To4()},
			proxyproto.NewAddr(&net.TCPAddr{IP: net.IPv4(10, 1, 0, 1)}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, i).To16()}, nil),
		} {
			m := replicas[which]
			m.maxAnswers = 8
			reply := ask(t, m, new(dns.Msg).SetQuestion("db.demo.svc."+testZone, dns.TypeA), &proxied{remote: client})
			answers = append(answers, strings.Join(sorted(reply.Answer), " "))
		}
		if answers[0] != answers[1] {
			t.Errorf("client %d: one replica answers %s, the other %s", i, answers[0], answers[1])
		}
		subsets[answers[0]] = true
	}
	if len(subsets) < 25 {
		t.Errorf("50 clients get %d different subsets", len(subsets))
	}
}

// The server drops cookies and padding from the OPT record that it copies into a reply, so they take no room, and the
// server need not truncate the reply.
func TestOptionsThatTheReplyDoesNotHaveTakeNoRoom(t *testing.T) {
	m := newTestPlugin(many(100))
	for size := range uint16(16) { // octets of a record
		r := new(dns.Msg).SetQuestion("db.demo.svc."+testZone, dns.TypeA)
		r.SetEdns0(1200+size, false)
		own, plain := ask(t, m, r, udpClient), throughServer(t, m, r.Copy())
		r.IsEdns0().Option = []dns.EDNS0{
			&dns.EDNS0_PADDING{Padding: make([]byte, 68)},
			&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0102030405060708"},
		}
		got := throughServer(t, m, r)
		if len(got.Answer) != len(plain.Answer) || len(own.Answer) != len(plain.Answer) {
			t.Errorf("%d octets: with options the reply has %d records, without them %d, and %d before the server sends it",
				1200+size, len(got.Answer), len(plain.Answer), len(own.Answer))
		}
	}
}

// throughServer returns the reply as the server sends it, with an OPT record and truncated to the client's buffer.
func throughServer(t *testing.T, m *Multicluster, r *dns.Msg) *dns.Msg {
	t.Helper()
	recorder := dnstest.NewRecorder(udpClient)
	if _, err := m.ServeDNS(t.Context(), request.NewScrubWriter(r, recorder), r); err != nil {
		t.Fatal(err)
	}
	return recorder.Msg
}

// TestASignedReplyFitsTheClientsBuffer, even if the plugin cache keeps it from an unsigned query.
func TestASignedReplyFitsTheClientsBuffer(t *testing.T) {
	const key, secret = "key.example.", "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"
	// Endpoints per cluster by buffer size. With the smaller buffer, the server itself does not compress.
	for size, endpoints := range map[uint16]int{1232: 200, 512: 15} {
		m := newTestPlugin(many(endpoints))
		m.signature = sizeSignature + len(key) + 1
		udp, _ := startChain(t, m, "tsig {\n secret "+key+" "+secret+"\n require none\n}\ncache")
		for _, qtype := range []uint16{dns.TypeA, dns.TypeSRV} {
			for _, algorithm := range []string{"", dns.HmacSHA256, dns.HmacSHA512} {
				r := new(dns.Msg).SetQuestion("db.demo.svc."+testZone, qtype)
				r.SetEdns0(size, false) // the size of the client's buffer
				if algorithm != "" {
					r.SetTsig(key, algorithm, 300, time.Now().Unix())
				}
				client := dns.Client{Timeout: patience, TsigSecret: map[string]string{key: secret}}
				reply, _, err := client.ExchangeContext(t.Context(), r, udp)
				if err != nil || (reply.IsTsig() == nil) != (algorithm == "") || !reply.Truncated || len(reply.Answer) < int(size)/125 {
					t.Errorf("%s in %d octets, %s: %v, %v", dns.TypeToString[qtype], size, algorithm, err, reply)
				}
			}
		}
	}
}

// proxied is a client with any address.
type proxied struct {
	test.ResponseWriter
	remote net.Addr
}

func (p *proxied) RemoteAddr() net.Addr { return p.remote }

func TestTheServersPreference(t *testing.T) {
	m := newTestPlugin(service{"db", recordtest.SQL, recordtest.Slices("east: 10.1.0.1; west: 10.2.0.1")})
	source, err := watch.New(t.Context(), &rest.Config{Host: "127.0.0.1:1"}, watch.Options{}, &m.config)
	must(t, err)
	m.source.Store(source)
	m.config.Cluster, m.prefer = "east", record.PreferCluster
	check(t, m, readCases("A db.demo.svc.@ = 10.1.0.1")[0])
}

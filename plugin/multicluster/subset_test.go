// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"net"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/proxyproto"
	"github.com/coredns/coredns/plugin/test"
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

// TestAReplyFitsTheClientsBuffer with the OPT record that the server adds, and another address would not.
func TestAReplyFitsTheClientsBuffer(t *testing.T) {
	for size, endpoints := range map[int]int{1232: 200, 512: 15} {
		for qtype, another := range map[uint16]int{dns.TypeA: 16, dns.TypeSRV: 80} {
			r := new(dns.Msg).SetQuestion("db.demo.svc."+testZone, qtype).SetEdns0(uint16(size), false)
			reply := ask(t, newTestPlugin(many(endpoints)), r, &test.ResponseWriter{})
			reply.Compress = true // as it was sent
			if reply.SetEdns0(uint16(size), false); !reply.Truncated || reply.Len() > size || reply.Len()+another <= size {
				t.Errorf("%s: %d of %d octets, %v", dns.TypeToString[qtype], reply.Len(), size, reply.MsgHdr)
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

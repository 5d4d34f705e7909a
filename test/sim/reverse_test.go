// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/plugin/kubernetes"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/miekg/dns"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// configOf makes CoreDNS's kubernetes plugin use the API server of a cluster.
type configOf struct {
	unused
	cluster *sim.Cluster
}

type unused = clientcmd.ClientConfig

func (c configOf) ClientConfig() (*rest.Config, error) { return c.cluster.Config(), nil }

// TestReverseNamesOfStockCoreDNS: a headless export changes no pod name in the DNS of its own cluster, and the
// kubernetes plugin's reply for the addresses of all clusters can be sent.
func TestReverseNamesOfStockCoreDNS(t *testing.T) {
	const pod = "10-64-0-1.db.demo.svc.cluster.local."
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		for c, address := range map[*sim.Cluster]string{east: "10.64.0.1", west: "10.65.0.1"} {
			c.Export("db!" + address)
		}
		sim.Wait(10 * time.Second)
		expect(t, east, map[string]string{"db": "east/10.64.0.1 west/10.65.0.1 -> 10.64.0.1 10.65.0.1"})

		parsed := caddy.NewTestController("dns", "kubernetes cluster.local in-addr.arpa")
		parsed.Next()
		stock, err := kubernetes.ParseStanza(parsed)
		east.Must(err)
		stock.ClientConfig = configOf{cluster: east}
		start, stop, err := stock.InitKubeCache(t.Context())
		east.Must(err)
		east.Must(start())
		defer func() { east.Must(stop()) }()
		for _, each := range []struct {
			name string
			of   uint16
			want []string
		}{
			{"1.0.64.10.in-addr.arpa.", dns.TypePTR, []string{pod}},
			{"1.0.65.10.in-addr.arpa.", dns.TypePTR, []string{"10-65-0-1.west.db.demo.svc.cluster.local."}},
			{"db.demo.svc.cluster.local.", dns.TypeA, []string{"10.64.0.1"}},
			{pod, dns.TypeA, []string{"10.64.0.1"}},
			{"10-65-0-1.db.demo.svc.cluster.local.", dns.TypeA, nil},
			{"10-65-0-1.west.db.demo.svc.cluster.local.", dns.TypeA, nil},
		} {
			reply := dnstest.NewRecorder(&test.ResponseWriter{})
			_, err := stock.ServeDNS(t.Context(), reply, new(dns.Msg).SetQuestion(each.name, each.of))
			east.Must(err)
			if _, err := reply.Msg.Pack(); err != nil {
				t.Errorf("%s: no answer: %v", each.name, err)
			}
			var got []string
			for _, rr := range reply.Msg.Answer {
				got = append(got, strings.ToLower(strings.TrimPrefix(rr.String(), rr.Header().String())))
			}
			slices.Sort(got)
			if got = slices.Compact(got); !slices.Equal(got, each.want) {
				t.Errorf("%s: %q, want %q", each.name, got, each.want)
			}
		}
	})
}

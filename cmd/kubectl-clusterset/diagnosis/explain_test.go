// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"net"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

func TestExpect(t *testing.T) {
	addresses := []string{"10.1.0.1", "10.1.0.2", "fd00::1"}
	headless, virtual := &state.Import{Type: "Headless"}, &state.Import{Type: "ClusterSetIP", Ready: 1}
	for name, test := range map[string]struct {
		imported  *state.Import
		addresses []string
		records   []string // none means NXDOMAIN, and an empty one SERVFAIL
		wrong     bool
	}{
		"all":                                   {virtual, addresses, []string{"10.1.0.1", "10.1.0.2"}, false},
		"one of two virtual IPs":                {virtual, addresses, []string{"10.1.0.1"}, true},
		"a part of a headless service":          {headless, addresses, []string{"10.1.0.2"}, false},
		"an address of no endpoint":             {headless, addresses, []string{"10.9.0.1"}, true},
		"no name":                               {headless, addresses, nil, true},
		"headless without addresses":            {headless, nil, nil, false},
		"no virtual IP":                         {virtual, nil, nil, true},
		"endpoints of another implementation":   {&state.Import{Type: "Headless", Reason: state.Foreign}, nil, []string{"10.9.0.1"}, false},
		"an IP of another implementation":       {&state.Import{Type: "ClusterSetIP", Reason: state.Foreign}, nil, []string{"10.9.0.1"}, false},
		"no ready endpoint":                     {&state.Import{Type: "ClusterSetIP"}, addresses, nil, false},
		"a service that is not imported at all": {nil, nil, nil, false},
		"no answer for what is not imported":    {nil, nil, []string{""}, true},
		"no answer of no endpoint":              {headless, nil, []string{""}, true},
	} {
		answer := cluster.Answer{Type: "A", Rcode: "NOERROR", Records: test.records}
		if len(test.records) == 0 {
			answer.Rcode = "NXDOMAIN"
		} else if test.records[0] == "" {
			answer.Rcode, answer.Records = "SERVFAIL", nil
		}
		if got := expect(answer, test.imported, test.addresses); got.Wrong != test.wrong || test.addresses != nil && len(got.Expected) != 2 {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestExplain(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	server := &dns.Server{Listener: listener, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
		_ = w.WriteMsg(new(dns.Msg).SetRcode(question, dns.RcodeNameError))
	})}
	ended, address := make(chan error, 1), listener.Addr().String()
	go func() { ended <- server.ActivateAndServe() }()
	t.Cleanup(func() { _, _ = listener.Close(), <-ended })
	controller := controllerOf(t, state.Explanation{
		Version: state.Version, Service: "shop/web", Cluster: "east",
		Import:    &state.Import{Type: "ClusterSetIP", Ready: 1, Endpoints: 1},
		Exports:   []state.Export{{Cluster: "west", State: "fresh", Rules: []string{"tier 1"}}},
		Endpoints: []state.Endpoint{{Address: "10.65.0.1", Cluster: "west", State: state.Used}},
		DNS:       []string{"10.161.0.1"}, Problems: []state.Finding{{What: "It has no IP.", Fix: "See `--contexts <context of east>`."}},
	})
	clusters := []*cluster.Cluster{{Context: "e", Namespace: cluster.DefaultNamespace, Controller: controller, DNSAddress: address}, {Context: "w", Controller: "127.0.0.1:1"}}
	all, err := Explain(t.Context(), clusters, types.NamespacedName{Namespace: "shop", Name: "web"}, "clusterset.local.")
	if len(all) != 1 || err == nil || !strings.HasPrefix(err.Error(), "context w: ") {
		t.Fatalf("got %v, %v", all, err)
	}
	if last := all[0].Problems[1]; last.Name != "dns-names" || last.Severity != state.Failed {
		t.Errorf("got %+v", last)
	}
	var text strings.Builder
	all[0].Text(&text)
	for _, want := range []string{
		"shop/web in cluster east: web.shop.svc.clusterset.local\n", "ClusterSetIP   -     -       -          1/1", "RULES\nwest     -       fresh   0/0     tier 1", "10.65.0.1   west", "WRONG, expected 10.161.0.1",
		"DNS (queried at " + address + ")\n", "- DNS returns NXDOMAIN for web.shop.svc.clusterset.local A instead of 10.161.0.1.\n",
		"  > kubectl clusterset check --contexts e\n", "- It has no IP.\n  > See `--contexts e`.\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

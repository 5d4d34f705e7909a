// SPDX-License-Identifier: Apache-2.0

// Package dns tests the plugin multicluster on real API servers and real sockets.
package dns

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"

	_ "github.com/clusterset-dns/clusterset-dns/cmd/coredns/command" // CoreDNS's own plugins.
	_ "github.com/clusterset-dns/clusterset-dns/plugin/multicluster" // The plugin in question.
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// clusters is the cluster that the tests share. It has no nodes: nobody runs pods here.
var clusters = controlplanetest.Shared(controlplane.Options{Name: "dns", Zones: []string{}})

// soon is how long a test waits for what must happen, on a machine that has more to do.
const soon = 3 * time.Minute

// patient makes a server begin to serve once it has listed everything, however long that takes. It is for those that
// are asked at once.
const patient = "startup_timeout 3m"

func TestMain(m *testing.M) {
	caddy.Quiet, dnsserver.Quiet = true, true
	directives := slices.Clone(dnsserver.Directives)
	at := slices.Index(directives, "kubernetes")
	if err := dnsserver.SetDirectives(
		slices.Insert(directives, at, obstinateBefore, "multicluster", obstinateAfter)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	controlplanetest.Main(m)
}

// server is a CoreDNS that runs in this process.
type server struct {
	t        testing.TB
	instance *caddy.Instance
}

// input is a Corefile with that text.
func input(corefile string) caddy.Input {
	return caddy.CaddyfileInput{Filepath: "Corefile", Contents: []byte(corefile), ServerTypeName: "dns"}
}

// serve starts a CoreDNS, which stops with the test. Its Corefile binds port 0 of 127.0.0.1.
func serve(t testing.TB, corefile string) *server {
	t.Helper()
	instance, err := caddy.Start(input(corefile))
	if err != nil {
		t.Fatalf("%v in\n%s", err, corefile)
	}
	s := &server{t: t, instance: instance}
	t.Cleanup(s.stop)
	return s
}

func (s *server) stop() {
	for _, err := range s.instance.ShutdownCallbacks() {
		s.t.Error(err)
	}
	if err := s.instance.Stop(); err != nil {
		s.t.Error(err)
	}
}

// address is where the server listens for a transport.
func (s *server) address(network string) string {
	listener := s.instance.Servers()[0]
	if network == "tcp" {
		return listener.Addr().String()
	}
	return listener.LocalAddr().String()
}

// exchange puts a query to the server.
func (s *server) exchange(network string, r *dns.Msg) *dns.Msg {
	s.t.Helper()
	client := dns.Client{Net: network, Timeout: soon}
	reply, _, err := client.Exchange(r, s.address(network))
	if err != nil {
		s.t.Fatalf("%s over %s: %v", r.Question[0].String(), network, err)
	}
	return reply
}

// query asks for a name, over UDP with EDNS.
func (s *server) query(qname string, qtype uint16) *dns.Msg {
	s.t.Helper()
	r := new(dns.Msg).SetQuestion(qname, qtype)
	r.SetEdns0(4096, false)
	return s.exchange("udp", r)
}

// answers is the answer to a query as text: the rcode, or the data of the records, sorted.
func (s *server) answers(qname string, qtype uint16) string {
	s.t.Helper()
	return textOf(s.query(qname, qtype))
}

func textOf(reply *dns.Msg) string {
	if reply.Rcode != dns.RcodeSuccess {
		return dns.RcodeToString[reply.Rcode]
	}
	if len(reply.Answer) == 0 {
		return "NODATA"
	}
	data := make([]string, len(reply.Answer))
	for i, rr := range reply.Answer {
		data[i] = strings.TrimPrefix(rr.String(), rr.Header().String())
	}
	slices.Sort(data)
	return strings.Join(data, " ")
}

// expect asks once.
func (s *server) expect(qname string, qtype uint16, want string) {
	s.t.Helper()
	if got := s.answers(qname, qtype); got != want {
		s.t.Fatalf("%s %s is answered with %s, want %s", qname, dns.TypeToString[qtype], got, want)
	}
}

// until waits for a query to be answered so.
func (s *server) until(qname string, qtype uint16, want string) {
	s.t.Helper()
	wait(s.t, func() error {
		if got := s.answers(qname, qtype); got != want {
			return fmt.Errorf("%s %s is answered with %s, want %s", qname, dns.TypeToString[qtype], got, want)
		}
		return nil
	})
}

var must = controlplanetest.Must

// wait polls for a state.
func wait(t testing.TB, reached func() error) {
	t.Helper()
	controlplanetest.Eventually(t, "a state", func(context.Context) error { return reached() })
}

// admin is a kubeconfig file with all rights.
func admin(t testing.TB, cluster *controlplane.Cluster) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, cluster.WriteKubeconfig(path))
	return path
}

// objects writes objects to one namespace of a cluster.
type objects struct {
	t         testing.TB
	cluster   *controlplane.Cluster
	namespace string
}

// namespace creates a namespace of the test's own.
func namespace(t testing.TB, cluster *controlplane.Cluster, name string) objects {
	t.Helper()
	o := objects{t, cluster, name}
	o.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}")
	return o
}

// apply creates or changes the objects of YAML documents.
func (o objects) apply(text string) {
	o.t.Helper()
	if err := clusterset.ApplyIn(o.t.Context(), o.cluster, o.namespace, []byte(text)); err != nil {
		o.t.Fatalf("%v in\n%s", err, text)
	}
}

// heldImports is how many imports all instances of the plugin hold, by their metric.
func heldImports(t testing.TB) float64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	must(t, err)
	for _, family := range families {
		for _, each := range family.GetMetric() {
			if family.GetName() == "coredns_multicluster_objects" && each.GetLabel()[0].GetValue() == "serviceimports" {
				return each.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// serviceImport is the YAML of an import.
func serviceImport(name, spec string) string {
	return "apiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceImport\nmetadata: {name: " + name +
		"}\nspec: " + spec + "\n---\n"
}

// endpointSlice is the YAML of a slice; its name is that of the service, the cluster and the family.
func endpointSlice(service, cluster, family, ports string, endpoints ...string) string {
	var b strings.Builder
	name := strings.ToLower(service + "-" + strings.ReplaceAll(cluster, ".", "-") + "-" + family)
	b.WriteString("apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata:\n  name: " + name + "\n")
	b.WriteString("  labels:\n    multicluster.kubernetes.io/service-name: " + service + "\n")
	b.WriteString("    multicluster.kubernetes.io/source-cluster: " + cluster + "\n")
	b.WriteString("addressType: " + family + "\nports: " + ports + "\nendpoints:\n")
	for _, endpoint := range endpoints {
		b.WriteString("- " + endpoint + "\n")
	}
	return b.String() + "---\n"
}

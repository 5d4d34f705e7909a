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

	"github.com/clusterset-dns/clusterset-dns/cmd/coredns/command" // With CoreDNS's own plugins.
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// soon is how long a test waits for what must happen, on a machine that has more to do.
const soon = 3 * time.Minute

func TestMain(m *testing.M) {
	caddy.Quiet, dnsserver.Quiet = true, true
	if err := dnsserver.SetDirectives(command.Directives()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	controlplanetest.Main(m)
}

// server is a CoreDNS that runs in this process.
type server struct {
	*testing.T
	address string // over UDP
}

// serve starts a CoreDNS, which stops with the test. Its Corefile binds port 0 of 127.0.0.1.
func serve(t *testing.T, corefile string) *server {
	t.Helper()
	instance, err := caddy.Start(caddy.CaddyfileInput{Filepath: "Corefile", Contents: []byte(corefile), ServerTypeName: "dns"})
	if err != nil {
		t.Fatalf("%v in\n%s", err, corefile)
	}
	t.Cleanup(func() {
		for _, err := range append(instance.ShutdownCallbacks(), instance.Stop()) {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return &server{t, instance.Servers()[0].LocalAddr().String()}
}

// query is the answer to a query over UDP as text: the rcode, or the data of the records, sorted.
func (s *server) query(qname string, qtype uint16) (string, error) {
	r := new(dns.Msg).SetQuestion(qname, qtype)
	r.SetEdns0(4096, false)
	client := dns.Client{Timeout: 2 * time.Second}
	reply, _, err := client.ExchangeContext(s.Context(), r, s.address)
	switch {
	case err != nil:
		return "", err
	case reply.Rcode != dns.RcodeSuccess:
		return dns.RcodeToString[reply.Rcode], nil
	case len(reply.Answer) == 0:
		return "NODATA", nil
	}
	data := make([]string, len(reply.Answer))
	for i, rr := range reply.Answer {
		data[i] = strings.TrimPrefix(rr.String(), rr.Header().String())
	}
	slices.Sort(data)
	return strings.Join(data, " "), nil
}

// until waits for a query for the A records of a name to be answered so.
func (s *server) until(qname, want string) {
	s.Helper()
	controlplanetest.Eventually(s, "an answer", func(context.Context) error {
		if got, err := s.query(qname, dns.TypeA); got != want {
			return fmt.Errorf("%s is answered with %s, %v, want %s", qname, got, err, want)
		}
		return nil
	})
}

var must = controlplanetest.Must

// admin is a kubeconfig file with all rights.
func admin(t *testing.T, cluster *controlplane.Cluster) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, cluster.WriteKubeconfig(path))
	return path
}

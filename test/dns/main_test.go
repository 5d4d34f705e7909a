// SPDX-License-Identifier: Apache-2.0

// Package dns tests the plugin multicluster on real API servers and real sockets.
package dns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/cmd/coredns/command" // With CoreDNS's own plugins.
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) {
	caddy.Quiet, dnsserver.Quiet = true, true
	if err := dnsserver.SetDirectives(command.Directives()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	controlplanetest.Main(m)
}

// server is the address of a CoreDNS that runs in this process.
type server string

// serve starts a CoreDNS, which stops with the test. Its Corefile binds port 0 of 127.0.0.1.
func serve(t *testing.T, corefile string) server {
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
	return server(instance.Servers()[0].LocalAddr().String())
}

// ask returns the answer to a question of the form "NAME.NAMESPACE TYPE": the code, or the data of the records, sorted.
func (s server) ask(ctx context.Context, question string) (string, error) {
	name, kind, _ := strings.Cut(question, " ")
	r := new(dns.Msg).SetQuestion(name+".svc.clusterset.local.", dns.StringToType[kind])
	r.SetEdns0(4096, false)
	client := dns.Client{Timeout: 2 * time.Second}
	reply, _, err := client.ExchangeContext(ctx, r, string(s))
	switch {
	case err != nil:
		return "no reply", err // where a name has an empty label, the stock server cannot pack it
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
	return strings.ReplaceAll(priorityAndWeight.ReplaceAllString(strings.Join(data, " "), "$1"), ".svc.clusterset.local.", ""), nil
}

// until waits for an answer to a question.
func (s server) until(t *testing.T, question, want string) {
	controlplanetest.Eventually(t, "an answer", func(ctx context.Context) error {
		if got, err := s.ask(ctx, question); got != want {
			return errors.Join(err, fmt.Errorf("%s is answered with %s, want %s", question, got, want))
		}
		return nil
	})
}

// priorityAndWeight begin the data of an SRV record. The specification leaves them open.
var priorityAndWeight = regexp.MustCompile(`\b0 \d+ (\d+ [a-z0-9-]+\.)`)

var must = controlplanetest.Must

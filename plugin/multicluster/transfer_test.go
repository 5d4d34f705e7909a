// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/miekg/dns"
)

// listenForNotify starts a secondary, and returns its address and the zones of the NOTIFY messages that it gets.
func listenForNotify(t *testing.T) (address string, zones <-chan string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 100)
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		if r.Opcode == dns.OpcodeNotify && r.Question[0].Qtype == dns.TypeSOA {
			got <- r.Question[0].Name
		}
		if err := w.WriteMsg(new(dns.Msg).SetReply(r)); err != nil {
			t.Error(err)
		}
	})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.ActivateAndServe() // it ends when the connection is closed
	}()
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	return conn.LocalAddr().String(), got
}

// watchableCluster is the kubeconfig of an API server that has no ServiceImport at first, and then sends the events.
func watchableCluster(t *testing.T, events <-chan string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.FormValue("watch") == "" {
			fmt.Fprint(w, `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImportList","metadata":{"resourceVersion":"1"},"items":[]}`)
			return
		}
		if r.FormValue("sendInitialEvents") != "" {
			fmt.Fprintln(w,
				`{"type":"BOOKMARK","object":{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport",`+
					`"metadata":{"resourceVersion":"1","annotations":{"k8s.io/initial-events-end":"true"}}}}`)
		}
		for {
			if err := http.NewResponseController(w).Flush(); err != nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case event := <-events:
				fmt.Fprintln(w, event)
			}
		}
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(
		`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
		clusters: [{name: c, cluster: {server: %q}}]}`, server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASecondaryIsNotifiedByTheTransferPlugin(t *testing.T) {
	before := notifyCadence
	notifyCadence = cadence{}
	t.Cleanup(func() { notifyCadence = before })
	caddy.Quiet, dnsserver.Quiet = true, true
	secondary, zones := listenForNotify(t)
	events := make(chan string, 1)
	instance, err := caddy.Start(caddy.CaddyfileInput{
		Filepath: "Corefile", ServerTypeName: "dns",
		Contents: fmt.Appendf(nil,
			"clusterset.local:0 {\n bind 127.0.0.1\n multicluster {\n kubeconfig %s\n noendpoints\n }\n"+
				" transfer {\n to %s\n }\n}", watchableCluster(t, events), secondary),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range instance.ShutdownCallbacks() {
			t.Error(err)
		}
		if err := instance.Stop(); err != nil {
			t.Error(err)
		}
	})
	// serial is that of the SOA record when the secondary gets the next NOTIFY.
	serial := func() uint32 {
		t.Helper()
		select {
		case zone := <-zones:
			if zone != testZone {
				t.Errorf("NOTIFY is for the zone %s", zone)
			}
		case <-time.After(patience):
			t.Fatal("there is no NOTIFY")
		}
		client := dns.Client{Timeout: patience}
		reply, _, err := client.ExchangeContext(t.Context(), new(dns.Msg).SetQuestion(testZone, dns.TypeSOA),
			instance.Servers()[0].LocalAddr().String())
		if err != nil || len(reply.Answer) != 1 {
			t.Fatalf("the SOA record is %v, %v", reply, err)
		}
		return reply.Answer[0].(*dns.SOA).Serial
	}
	first := serial()
	events <- `{"type":"ADDED","object":{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport",` +
		`"metadata":{"name":"web","namespace":"demo","resourceVersion":"2"},"spec":{"type":"ClusterSetIP","ips":["10.42.0.1"]}}}`
	if second := serial(); int32(second-first) <= 0 {
		t.Errorf("after a change the serial is %d, and was %d", second, first)
	}
}

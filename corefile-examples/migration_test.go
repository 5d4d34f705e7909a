// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// With the search path of pods, a resolver asks for each external name in cluster.local first, and some resolvers stop
// at SERVFAIL.
func TestMigrationWithoutTheCRDLeavesClusterLocalAsItWas(t *testing.T) {
	text, err := os.ReadFile("migration.Corefile")
	if err != nil {
		t.Fatal(err)
	}
	inner := freePort(t)
	corefile := strings.ReplaceAll(atHome(string(text), clusterOf(t, "EndpointSlice")), "1053", inner)
	corefile = localNames.ReplaceAllString(corefile, "") // it has none of the names below, and would pass each on
	corefile = strings.NewReplacer(":53 {", ":0 {\n bind 127.0.0.1", "startup_timeout 1ms",
		"startup_timeout 1m").Replace(corefile)
	instance, err := caddy.Start(caddy.CaddyfileInput{
		Filepath: "migration.Corefile", Contents: []byte(corefile),
		ServerTypeName: "dns",
	})
	if err != nil {
		t.Fatalf("%v in\n%s", err, corefile)
	}
	defer func() {
		for _, err := range instance.ShutdownCallbacks() {
			t.Error(err)
		}
		if err := instance.Stop(); err != nil {
			t.Error(err)
		}
	}()
	address := instance.Servers()[0].LocalAddr().String() // cluster.local is the first block
	for qname, want := range map[string]int{
		"example.org.default.svc.cluster.local.": dns.RcodeNameError,
		"web.default.svc.cluster.local.":         dns.RcodeNameError,
	} {
		reply, _, err := new(dns.Client).Exchange(new(dns.Msg).SetQuestion(qname, dns.TypeA), address)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Rcode != want {
			t.Errorf("%s: %s, want %s", qname, dns.RcodeToString[reply.Rcode], dns.RcodeToString[want])
		}
	}
}

// A name of cluster.local is answered with the import's address, under the name that was asked for. Other names are not
// rewritten.
func TestRewrittenNames(t *testing.T) {
	text, err := os.ReadFile("rewrite.Corefile")
	if err != nil {
		t.Fatal(err)
	}
	const imported = `{"kind":"ServiceImport","apiVersion":"multicluster.x-k8s.io/v1beta1",
		"metadata":{"name":"db","namespace":"shop","uid":"1","resourceVersion":"5"},
		"spec":{"type":"ClusterSetIP","ips":["10.43.0.9"],"ports":[{"name":"sql","port":5432,"protocol":"TCP"}]}}`
	corefile := atHome(string(text), clusterWith(t, imported, "ServiceImport", "EndpointSlice"))
	corefile = localZones.ReplaceAllString(corefile, "")
	corefile = strings.Replace(corefile, "startup_timeout 1ms", "startup_timeout 1m", 1)
	instance, err := caddy.Start(caddy.CaddyfileInput{
		Filepath: "rewrite.Corefile", Contents: []byte(corefile), ServerTypeName: "dns",
	})
	if err != nil {
		t.Fatalf("%v in\n%s", err, corefile)
	}
	defer func() {
		for _, err := range instance.ShutdownCallbacks() {
			t.Error(err)
		}
		if err := instance.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, qname := range []string{"db.shop.svc.cluster.local.", "db.shop.svc.clusterset.local."} {
		reply, _, err := new(dns.Client).Exchange(new(dns.Msg).SetQuestion(qname, dns.TypeA),
			instance.Servers()[0].LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		if len(reply.Answer) != 1 || reply.Answer[0].Header().Name != qname ||
			!strings.HasSuffix(reply.Answer[0].String(), "\t10.43.0.9") {
			t.Errorf("%s: %v", qname, reply)
		}
	}
}

var localZones = regexp.MustCompile(`(?s) +kubernetes cluster\.local.*?\n    \}\n`)

var localNames = regexp.MustCompile(`(?s)kubernetes +\{.*?\}\n`)

// freePort is a port of loopback that nothing listens at.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}()
	_, port, err := net.SplitHostPort(listener.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// clusterOf is the kubeconfig of an API server that has no objects, and these kinds alone.
func clusterOf(t *testing.T, kinds ...string) string {
	t.Helper()
	return clusterWith(t, "", kinds...)
}

// clusterWith is clusterOf with one object of the first kind, as JSON.
func clusterWith(t *testing.T, object string, kinds ...string) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		at := slices.IndexFunc(kinds, func(kind string) bool { return strings.ToLower(kind)+"s" == path.Base(r.URL.Path) })
		w.Header().Set("Content-Type", "application/json")
		switch {
		case at < 0:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		case query.Has("sendInitialEvents"):
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		case query.Has("watch"):
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			items := ""
			if at == 0 {
				items = object
			}
			_, _ = fmt.Fprintf(w, `{"kind":"%sList","apiVersion":"%s","metadata":{"resourceVersion":"7"},"items":[%s]}`,
				kinds[at], strings.TrimPrefix(path.Dir(r.URL.Path), "/apis/"), items)
		}
	}))
	server.Config.BaseContext = func(net.Listener) context.Context { return t.Context() } // watches end with the test
	server.Start()
	t.Cleanup(server.Close)
	return kubeconfigFor(t, server.URL)
}

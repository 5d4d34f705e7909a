// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/caddy"
	_ "github.com/coredns/coredns/plugin/ready"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/watch"
)

// apiServer is an API server with two imports in each namespace: web, whose status has a time that Go's types cannot decode, and
// one without a valid name. A list of all namespaces returns those of demo.
type apiServer struct {
	kubeconfig string
	watches    atomic.Int32 // running watches of imports

	mu      sync.Mutex
	ip      string // of the import; if it is empty, all requests fail
	changed chan struct{}
}

func newAPIServer(t *testing.T, ip string) *apiServer {
	t.Helper()
	s := &apiServer{ip: ip, changed: make(chan struct{})}
	server := httptest.NewUnstartedServer(s)
	// Watches end with the test, because Close waits for each, even if it has just begun.
	server.Config.BaseContext = func(net.Listener) context.Context { return t.Context() }
	server.Start()
	t.Cleanup(server.Close)
	s.kubeconfig = file(t, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
		contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}`, server.URL))
	return s
}

// set gives the import an IP.
func (s *apiServer) set(ip string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ip = ip
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *apiServer) state() (ip string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ip, s.changed
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, below, _ := strings.Cut(r.URL.Path, "/namespaces/")
	namespace, _, _ := strings.Cut(below, "/")
	web := func(ip string) string {
		return fmt.Sprintf(`{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport","metadata":{"name":"web","namespace":%q,
			"resourceVersion":"6"},"spec":{"type":"ClusterSetIP","ips":[%q],"ports":[]},
			"status":{"conditions":[{"type":"X","lastTransitionTime":"2026-01-01t00:00:00Z"}]}}`, cmp.Or(namespace, "demo"), ip)
	}
	imports := strings.Contains(r.URL.Path, "serviceimports")
	ip, changed := s.state()
	w.Header().Set("Content-Type", "application/json")
	switch query := r.URL.Query(); {
	case ip == "":
		w.WriteHeader(http.StatusServiceUnavailable)
	case strings.Contains(r.URL.Path, "net.gke.io"):
		w.WriteHeader(http.StatusNotFound)
	case query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	case query.Get("watch") != "":
		if imports {
			s.watches.Add(+1)
			defer s.watches.Add(-1)
		}
		for ; ip != ""; ip, changed = s.state() {
			if imports { // it may have changed after the list
				_, _ = io.WriteString(w, `{"type":"MODIFIED","object":`+web(ip)+"}")
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-changed:
			}
		}
	case imports:
		_, _ = fmt.Fprintf(w, `{"kind":"ServiceImportList","apiVersion":"multicluster.x-k8s.io/v1beta1","metadata":{"resourceVersion":"5"},
			"items":[%s,{"metadata":{"name":"A"},"spec":{}}]}`, web(ip))
	default:
		_, _ = io.WriteString(w, `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`)
	}
}

// unused returns a loopback address on which nothing listens.
func unused(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// reloads is a server that a test reloads.
type reloads struct {
	*testing.T
	api                    *apiServer
	dns, ready, kubeconfig string
	instance               *caddy.Instance
}

// block is a server block with plugins.
func (s *reloads) block(plugins string) caddy.Input {
	return caddy.CaddyfileInput{Filepath: "Corefile", ServerTypeName: "dns", Contents: fmt.Appendf(nil,
		".:%s {\n bind 127.0.0.1\n ready %s\n %s\n}", port(s.dns), s.ready, plugins)}
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// with returns the plugin's block with the options.
func (s *reloads) with(options string) string {
	return "multicluster clusterset.local {\n kubeconfig " + s.kubeconfig + "\n " + options + "\n }\n "
}

func (s *reloads) reload(options string) {
	s.Helper()
	instance, err := s.instance.Restart(s.block(s.with(options)))
	if err != nil {
		s.Fatal(err)
	}
	s.instance = instance
	s.serving()
}

// serving waits until the server serves, because CoreDNS does not stop a server that has not yet begun to serve.
func (s *reloads) serving() {
	s.Helper()
	for _, network := range []string{"udp", "tcp"} {
		client := dns.Client{Net: network, Timeout: patience}
		if _, _, err := client.ExchangeContext(s.Context(), new(dns.Msg).SetQuestion(testZone, dns.TypeSOA), s.dns); err != nil {
			s.Fatal(err)
		}
	}
}

// source returns the source of the running plugin.
func source() (source *watch.Source) {
	for _, m := range running() {
		source = m.source.Load()
	}
	return source
}

// ask returns the address of web and its TTL, or the rcode.
func (s *reloads) ask() string {
	s.Helper()
	reply, _, err := (&dns.Client{Timeout: patience}).ExchangeContext(s.Context(),
		new(dns.Msg).SetQuestion("web.demo.svc."+testZone, dns.TypeA), s.dns)
	switch {
	case err != nil:
		s.Errorf("web is not answered: %v", err)
		return ""
	case len(reply.Answer) == 1:
		return fmt.Sprint(reply.Answer[0].(*dns.A).A, " ", reply.Answer[0].Header().Ttl)
	}
	return dns.RcodeToString[reply.Rcode]
}

// until waits for this answer.
func (s *reloads) until(want string) {
	s.Helper()
	for deadline := time.Now().Add(patience); s.ask() != want; {
		if time.Now().After(deadline) {
			s.Fatalf("web is answered with %s, want %s", s.ask(), want)
		}
	}
}

// watching waits until this many watches of imports run. Without a watch there must be no metrics of watches.
func (s *reloads) watching(want int32) {
	s.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(time.Millisecond) {
		got, metrics := s.api.watches.Load(), 0
		if want == 0 {
			metrics, _ = testutil.GatherAndCount(prometheus.DefaultGatherer, "coredns_multicluster_watch_healthy")
		}
		if got == want && metrics == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%d watches run, want %d; there are metrics of %d", got, want, metrics)
		}
	}
}

// readiness returns the status and the body of /ready; the status is 0 if there is no response.
func (s *reloads) readiness() (status int, says string) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+s.ready+"/ready", nil)
	if err != nil {
		s.Error(err)
	}
	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
	if err != nil {
		return 0, ""
	}
	body, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	return response.StatusCode, string(body)
}

// newReloads starts a server with the plugins.
func newReloads(t *testing.T, api *apiServer, plugins func(*reloads) string) *reloads {
	t.Helper()
	s := &reloads{T: t, api: api, dns: unused(t), ready: unused(t), kubeconfig: api.kubeconfig}
	var err error
	if s.instance, err = caddy.Start(s.block(plugins(s))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		shutDown(t, s.instance)
		s.watching(0)
	})
	return s
}

// TestReloadsKeepTheLastAnswersUntilTheNewOnesAreComplete: a reload loses no query and does not withdraw readiness.
func TestReloadsKeepTheLastAnswersUntilTheNewOnesAreComplete(t *testing.T) {
	api := newAPIServer(t, "") // the API server is unavailable
	s := newReloads(t, api, func(s *reloads) string { return s.with("startup_timeout 50ms") })
	s.until("SERVFAIL")
	api.set("10.42.0.1")
	s.until("10.42.0.1 5")
	reloaded := make(chan struct{})
	var polling sync.WaitGroup
	poll := func(check func()) {
		polling.Go(func() {
			for {
				check()
				select {
				case <-reloaded:
					return
				default:
				}
			}
		})
	}
	poll(func() {
		// During a reload, the *ready* plugin itself may report that it is shutting down.
		if got, says := s.readiness(); got == http.StatusServiceUnavailable && says == pluginName {
			t.Error("readiness is withdrawn during a reload")
		}
	})
	poll(func() {
		if got := s.ask(); got != "10.42.0.1 5" {
			t.Errorf("before the objects are listed the answer is %s", got)
		}
	})
	first := source()
	for range 5 {
		s.reload("")
		s.watching(1) // all plugins share a watch
	}
	if source() != first {
		t.Error("reloads that change nothing list all objects again")
	}
	api.set("") // the API server is unavailable
	// A new watch or configuration has no answers yet. The last plugin that has some answers, even two reloads later.
	for _, other := range []string{"ttl 30", "prefer cluster\ncluster east", "labels a!=b", "ttl 60\nlabels a!=b"} {
		s.reload("startup_timeout 50ms\n" + other)
	}
	close(reloaded)
	polling.Wait()
	if got, says := s.readiness(); got != http.StatusOK {
		t.Errorf("before the objects are listed /ready answers %d %s", got, says)
	}
	api.set("10.42.0.2")
	s.until("10.42.0.2 60")
	// A resource that the API server does not have is never listed. The previous answers stay, and follow changes.
	s.reload("groups net.gke.io")
	api.set("10.42.0.3")
	s.until("10.42.0.3 60")
	s.reload("namespaces other")
	s.until("NXDOMAIN")
	s.reload("") // the options of the first watch, but a new watch
	s.until("10.42.0.3 5")
}

// TestAReloadThatFailsLeavesNoWatch: the instance that serves has a running watch, and no other has one.
func TestAReloadThatFailsLeavesNoWatch(t *testing.T) {
	api := newAPIServer(t, "10.42.0.1")
	s := newReloads(t, api, func(s *reloads) string { return s.with("ttl 10") })
	options := "labels a!=b\n ttl 30" // need a separate watch
	if _, err := s.instance.Restart(s.block(s.with(options) + "}\nexample.org:53 {\n bind 192.0.2.1")); err == nil {
		t.Fatal("the reload did not fail")
	}
	for _, ip := range []string{"10.42.0.2", "10.42.0.3"} {
		api.set(ip)
		s.until(ip + " 10")
	}
	s.watching(1)
}

// TestAServerBlockAnswersNothingOfAnother: blocks with the same zone and port may listen on different addresses.
func TestAServerBlockAnswersNothingOfAnother(t *testing.T) {
	away := newAPIServer(t, "")
	s := newReloads(t, newAPIServer(t, "10.42.0.1"), func(s *reloads) string {
		first := s.with("")
		s.kubeconfig = away.kubeconfig
		return first + "}\n.:" + port(s.dns) + " {\n bind 127.0.0.2\n " + s.with("startup_timeout 50ms")
	})
	s.until("10.42.0.1 5")
	s.dns = net.JoinHostPort("127.0.0.2", port(s.dns))
	if got := s.ask(); got != "SERVFAIL" {
		t.Errorf("the block that has no answers yet answers %s", got)
	}
}

func TestOnlyThePluginOfTheSameServerBlockIsReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		zones, keys []string
		view        string
		want        bool
	}{
		"one zone of two": {[]string{"example.org.", testZone}, []string{"dns://.:53"}, "internal", true},
		"another zone":    {[]string{"example.org."}, []string{"dns://.:53"}, "internal", false},
		"another port":    {[]string{testZone}, []string{"dns://.:54"}, "internal", false},
		"another view":    {[]string{testZone}, []string{"dns://.:53"}, "", false},
		"one key of two":  {[]string{testZone}, []string{"dns://a.:53", "dns://.:53"}, "internal", true},
	} {
		old, next := newMulticluster(), newMulticluster()
		old.config.Zones, old.keys, old.server.ViewName = test.zones, test.keys, test.view
		next.config.Zones, next.keys, next.server.ViewName = []string{testZone}, []string{"dns://.:53"}, "internal"
		if got := next.replaces(old); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/ready"
	"github.com/miekg/dns"
)

// apiServer is an API server that has the import demo/web with that IP, answers lists once the channel is closed, and
// sends events of imports. It returns a kubeconfig.
func apiServer(t *testing.T, ip string, answers <-chan struct{}, events <-chan string) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-answers:
		case <-r.Context().Done():
			return
		}
		list := `{"kind":"EndpointSliceList","apiVersion":"discovery.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":[]}`
		if strings.Contains(r.URL.Path, "serviceimports") {
			list = fmt.Sprintf(`{"kind":"ServiceImportList","apiVersion":"multicluster.x-k8s.io/v1beta1",
				"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"web","namespace":"demo"},
				"spec":{"type":"ClusterSetIP","ips":[%q],"ports":[]}}]}`, ip)
		}
		w.Header().Set("Content-Type", "application/json")
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		case query.Get("watch") != "":
			for event := ""; ; {
				_, _ = io.WriteString(w, event)
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
					return
				case event = <-events:
				}
			}
		default:
			_, _ = io.WriteString(w, list)
		}
	}))
	// Watches end with the test: Close waits for each, even for one that began a moment ago.
	server.Config.BaseContext = func(net.Listener) context.Context { return t.Context() }
	server.Start()
	t.Cleanup(server.Close)
	return kubeconfigOf(t, server.URL)
}

// unused is an address of loopback that nothing listens at.
func unused(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// reloads is a server that a test reloads.
type reloads struct {
	*testing.T
	dns, ready string // addresses
	instance   *caddy.Instance
}

func (s *reloads) corefile(kubeconfig, more string) caddy.Input {
	_, port, _ := net.SplitHostPort(s.dns)
	return caddy.CaddyfileInput{Filepath: "Corefile", ServerTypeName: "dns", Contents: fmt.Appendf(nil,
		".:%s {\n bind 127.0.0.1\n ready %s\n multicluster clusterset.local {\n kubeconfig %s\n %s\n }\n}", port, s.ready,
		kubeconfig, more)}
}

func (s *reloads) reload(kubeconfig, more string) {
	s.Helper()
	instance, err := s.instance.Restart(s.corefile(kubeconfig, more))
	if err != nil {
		s.Fatal(err)
	}
	s.instance = instance
}

// ask returns the address of web and its TTL.
func (s *reloads) ask() (ip string, ttl uint32) {
	s.Helper()
	reply, _, err := (&dns.Client{Timeout: patience}).ExchangeContext(s.Context(),
		new(dns.Msg).SetQuestion("web.demo.svc."+testZone, dns.TypeA), s.dns)
	if err != nil || len(reply.Answer) != 1 {
		s.Fatalf("web is answered with %v, %v", reply, err)
	}
	return reply.Answer[0].(*dns.A).A.String(), reply.Answer[0].Header().Ttl
}

// readiness is the status of /ready, and what it says; the status is 0 if nothing listens.
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

func newReloads(t *testing.T, kubeconfig string) *reloads {
	t.Helper()
	caddy.Quiet, dnsserver.Quiet = true, true
	s := &reloads{T: t, dns: unused(t), ready: unused(t)}
	var err error
	if s.instance, err = caddy.Start(s.corefile(kubeconfig, "startup_timeout 1m")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		shutDown(t, s.instance)
		if got, _ := s.readiness(); got != 0 {
			t.Errorf("after the shutdown /ready answers %d", got)
		}
		watchers.Lock()
		defer watchers.Unlock()
		for resource, left := range watchers.of {
			if left > 0 {
				t.Errorf("after the shutdown %d watches of %s run", left, resource)
			}
		}
	})
	return s
}

func TestAReloadKeepsTheLastAnswersUntilTheNewOnesAreComplete(t *testing.T) {
	now, later := make(chan struct{}), make(chan struct{})
	close(now)
	s := newReloads(t, apiServer(t, "10.42.0.1", now, nil))
	slow := apiServer(t, "10.42.0.2", later, nil)
	reloaded := make(chan struct{})
	var polling sync.WaitGroup
	polling.Go(func() {
		for {
			// The *ready* plugin itself may say for a moment that it is shutting down.
			if got, says := s.readiness(); got == http.StatusServiceUnavailable && says == pluginName {
				t.Error("readiness is withdrawn during a reload")
				return
			}
			select {
			case <-reloaded:
				return
			default:
			}
		}
	})
	s.reload(slow, "startup_timeout 200ms\nttl 30")
	s.reload(slow, "startup_timeout 200ms\nttl 60\nlabels a!=b") // the last answers are not of this server's own watch
	close(reloaded)
	polling.Wait()
	if ip, ttl := s.ask(); ip != "10.42.0.1" || ttl != 5 {
		t.Errorf("before the objects are listed the answer is %s, TTL %d", ip, ttl)
	}
	if got, says := s.readiness(); got != http.StatusOK {
		t.Errorf("before the objects are listed /ready answers %d %s", got, says)
	}
	close(later)
	deadline := time.Now().Add(patience)
	for ip := ""; ip != "10.42.0.2"; {
		if ip, _ = s.ask(); time.Now().After(deadline) {
			t.Fatal("the new answers never came")
		}
	}
}

func TestOnlyThePluginOfTheSameServerBlockIsAPredecessor(t *testing.T) {
	for name, test := range map[string]struct {
		zones, keys []string
		answers     bool
		want        bool
	}{
		"the same":          {[]string{testZone}, []string{"dns://.:53"}, true, true},
		"one zone of two":   {[]string{"example.org.", testZone}, []string{"dns://.:53"}, true, true},
		"no answers yet":    {[]string{testZone}, []string{"dns://.:53"}, false, false},
		"another zone":      {[]string{"example.org."}, []string{"dns://.:53"}, true, false},
		"another port":      {[]string{testZone}, []string{"dns://.:54"}, true, false},
		"one key of two":    {[]string{testZone}, []string{"dns://a.:53", "dns://.:53"}, true, true},
		"it was shut down ": {nil, nil, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			old, next := newTestPlugin(t, demo), newMulticluster()
			old.Zones, old.keys = test.zones, test.keys
			next.Zones, next.keys = []string{testZone}, []string{"dns://.:53"}
			if !test.answers {
				old.index.Store(nil)
			}
			started.Store(old, func() {})
			defer old.stop()
			if test.zones == nil {
				old.Zones, old.keys = next.Zones, next.keys
				old.stop()
			}
			if got := next.predecessor() == old; got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

// throttled is a way to an API server that can refuse requests for being too many.
type throttled struct {
	*httptest.Server
	refuses atomic.Bool
}

func throttle(t *testing.T, cluster *controlplane.Cluster) *throttled {
	t.Helper()
	config := cluster.Config()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.FlushInterval = transport, -1
	way := new(throttled)
	way.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if way.refuses.Load() {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		defer func() {
			if cut := recover(); cut != nil && cut != any(http.ErrAbortHandler) {
				panic(cut) // a watch that is cut is what this is for
			}
		}()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		way.CloseClientConnections()
		way.Close()
	})
	return way
}

// kubeconfig leads to the API server by this way.
func (w *throttled) kubeconfig(t *testing.T) string {
	t.Helper()
	return kubeconfig(t, fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: way
contexts: [{name: way, context: {cluster: way, user: any}}]
clusters: [{name: way, cluster: {server: '%s'}}]
users: [{name: any, user: {}}]
`, w.URL), nil)
}

func TestAnswersGoOnWhileTheAPIServerThrottles(t *testing.T) {
	cluster := clusters(t)[0]
	demo := namespace(t, cluster, "throttled")
	imported := func(ip string) string {
		return serviceImport("v1beta1", "web", "{type: ClusterSetIP, ips: ["+ip+"], ports: []}")
	}
	const qname = "web.throttled.svc.clusterset.local."
	demo.apply(imported("10.42.0.1"))
	way := throttle(t, cluster)
	ready := freeAddress(t)
	s := beside(t, way.kubeconfig(t), ready)
	s.until(qname, dns.TypeA, "10.42.0.1")

	way.refuses.Store(true)
	way.CloseClientConnections()
	demo.apply(imported("10.42.0.2"))
	s.untilRefused("throttled")
	s.expect(qname, dns.TypeA, "10.42.0.1")
	expectReady(t, ready)

	way.refuses.Store(false)
	s.until(qname, dns.TypeA, "10.42.0.2")
}

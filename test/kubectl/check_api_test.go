// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

var apiFaults = []fault{
	{
		name: "an API server that is not there", round: "API servers", says: []string{"api-reachable north"},
		do:   func(t *testing.T, b *bed) { b.detour(t, b.north, "https://127.0.0.1:1") },
		hand: map[string]func(*testing.T, *bed){"correct the address": direct("north")},
	},
	{
		// What its API server says of itself is changed on the way, because no other can be run here.
		name: "an old API server", round: "API servers", says: []string{"api-version east"},
		do: func(t *testing.T, b *bed) {
			b.detour(t, b.east, through(t, b.east, func(response *http.Response) {
				if response.Request.URL.Path == "/version" {
					response.Body.Close()
					response.Body = io.NopCloser(strings.NewReader(`{"major":"1","minor":"29","gitVersion":"v1.29.3"}`))
					response.Header.Del("Content-Length")
				}
			}))
		},
		hand: map[string]func(*testing.T, *bed){"Upgrade Kubernetes": direct("east")},
	},
	{
		name: "two contexts of one cluster", round: "CRDs", says: []string{"distinct again"},
		do: func(t *testing.T, b *bed) {
			b.own.Contexts["again"] = &clientcmdapi.Context{Cluster: "east", AuthInfo: "east"}
			b.more = []string{"again"}
			b.kubeconfig(t)
		},
		hand: map[string]func(*testing.T, *bed){"Name each cluster once": func(t *testing.T, b *bed) {
			delete(b.own.Contexts, "again")
			b.more = nil
			b.kubeconfig(t)
		}},
	},
	{
		name: "a CRD is missing", round: "CRDs", says: []string{"crds north"},
		shell: "kubectl --context north delete crd serviceexports.multicluster.x-k8s.io",
	},
	{
		name: "old CRDs", round: "old CRDs", says: []string{"crds-complete north"},
		shell: `for crd in serviceimports:trafficDistribution serviceexports:exportedAnnotations; do
  for version in 0 1; do
    kubectl --context north patch crd ${crd%:*}.multicluster.x-k8s.io --type json -p '[{"op":"remove","path":"/spec/versions/'$version'/schema/openAPIV3Schema/properties/spec/properties/'${crd#*:}'"}]'
  done
done`,
	},
	{
		name: "the controller does not run",
		says: []string{"controller east", "member-fresh north", "member-fresh west"},
		also: []string{"member-reachable north", "member-reachable west"},
		do: func(t *testing.T, b *bed) {
			b.stopController(t, b.east)
		},
		hand: map[string]func(*testing.T, *bed){
			"Start clusterset-controller": func(t *testing.T, b *bed) { b.startController(t, b.east, "east") },
			// It runs by then, and is about to look, and to be heard.
			"Make sure that ":                        func(*testing.T, *bed) {},
			"Wait until its heartbeats have arrived": func(*testing.T, *bed) {},
		},
	},
	{
		name: "two clusters with one id", says: []string{"cluster-id east", "cluster-id north"},
		also: []string{
			"member-identity east", "member-identity west", "corefile-cluster north", "credential-usable north",
			"member-ranges west",
		},
		do: func(t *testing.T, b *bed) {
			b.stopController(t, b.north)
			b.startController(t, b.north, "east")
		},
		hand: map[string]func(*testing.T, *bed){"clusterId=<new id>": func(t *testing.T, b *bed) {
			b.stopController(t, b.north)
			b.startController(t, b.north, "north")
		}},
	},
	{
		// With it all goes that is in it; the hints that follow bring it back.
		name: "the namespace of the controller is gone",
		says: []string{"controller north"},
		also: []string{
			"joined east", "joined west", "joined north", "controller-rights north",
			"member-rights north", "member-reachable east", "member-reachable west", "member-fresh east",
			"member-fresh west",
		},
		do: func(t *testing.T, b *bed) {
			b.stopController(t, b.north)
			b.shell(t, "kubectl --context north delete namespace clusterset-dns")
		},
		hand: map[string]func(*testing.T, *bed){
			// What the chart installs. The check joined finds what is left to do only once the controller answers.
			"helm install": func(t *testing.T, b *bed) {
				b.grant(t, "north")
				b.startController(t, b.north, "north")
				eventually(t, "its heartbeat", func() error {
					_, err := b.north.Client().CoordinationV1().Leases(system).Get(t.Context(), member.HeartbeatLease, metav1.GetOptions{})
					return err
				})
				b.do(t, b.joinArgs()...)
			},
		},
	},
}

// detour has the user reach a cluster at another address.
func (b *bed) detour(t *testing.T, c *cluster, server string) {
	t.Helper()
	b.own.Clusters[c.Name()] = &clientcmdapi.Cluster{Server: server}
	b.kubeconfig(t)
}

// through is the address of a proxy before an API server that changes what it says.
func through(t *testing.T, c *cluster, change func(*http.Response)) string {
	t.Helper()
	config := c.Config()
	upstream, err := url.Parse(config.Host)
	must(t, err)
	transport, err := rest.TransportFor(config)
	must(t, err)
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:        func(request *httputil.ProxyRequest) { request.SetURL(upstream) },
		ModifyResponse: func(response *http.Response) error { change(response); return nil },
		Transport:      transport,
	})
	t.Cleanup(server.Close)
	return server.URL
}

// kubeconfig writes what the user reads before the others.
func (b *bed) kubeconfig(t *testing.T) {
	t.Helper()
	must(t, clientcmd.WriteToFile(*b.own, b.kubeconfigs[0]))
}

// direct has the user reach a cluster as before.
func direct(context string) func(*testing.T, *bed) {
	return func(t *testing.T, b *bed) {
		delete(b.own.Clusters, context)
		b.kubeconfig(t)
	}
}

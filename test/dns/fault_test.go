// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/miekg/dns"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

// beside is a server of the clusterset's zone and of another one.
func beside(t *testing.T, kubeconfig, ready string) *server {
	t.Helper()
	return serve(t, fmt.Sprintf(`.:0 {
		bind 127.0.0.1
		ready %s {
			monitor continuously
		}
		hosts {
			192.0.2.1 a.example.org
			fallthrough
		}
		multicluster clusterset.local {
			kubeconfig %s
		}
	}`, ready, kubeconfig))
}

// freeAddress is an address that nothing listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}()
	return listener.Addr().String()
}

// expectReady asks the ready plugin, more than once, since what is ready now may not stay so.
func expectReady(t *testing.T, address string) {
	t.Helper()
	for range 20 {
		expectReadyOnce(t, address)
	}
}

func expectReadyOnce(t *testing.T, address string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/ready", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the server is not ready: %s", response.Status)
	}
}

func web(version, ip string) string {
	return serviceImport(version, "web", "{type: ClusterSetIP, ips: ["+ip+"], ports: []}")
}

const (
	webName   = "web.demo.svc.clusterset.local."
	otherName = "a.example.org."
)

func TestAMissingCRDHarmsNoOtherZoneAndHeals(t *testing.T) {
	cluster := breakable(t)[0]
	if err := cluster.InstallCRDs(t.Context(), controlplane.CRDsNone); err != nil {
		t.Fatal(err)
	}
	demo := namespace(t, cluster, "demo")
	ready := freeAddress(t)
	s := beside(t, admin(t, cluster), ready)
	s.until(otherName, dns.TypeA, "192.0.2.1")
	s.until(webName, dns.TypeA, "SERVFAIL")
	expectReady(t, ready)

	if err := cluster.InstallCRDs(t.Context(), controlplane.CRDsV1alpha1); err != nil {
		t.Fatal(err)
	}
	demo.apply(web("v1alpha1", "10.42.0.1"))
	s.until(webName, dns.TypeA, "10.42.0.1")

	if err := cluster.InstallCRDs(t.Context(), controlplane.CRDsAll); err != nil {
		t.Fatal(err)
	}
	demo.apply(web("v1beta1", "10.42.0.2"))
	s.until(webName, dns.TypeA, "10.42.0.2")

	// Deleting the CRD deletes its objects, and so do their names go; the zone goes on to be served.
	if err := cluster.InstallCRDs(t.Context(), controlplane.CRDsNone); err != nil {
		t.Fatal(err)
	}
	s.until(webName, dns.TypeA, "NXDOMAIN")
	if err := cluster.InstallCRDs(t.Context(), controlplane.CRDsAll); err != nil {
		t.Fatal(err)
	}
	demo.apply(web("v1beta1", "10.42.0.3"))
	s.until(webName, dns.TypeA, "10.42.0.3")
	s.until(otherName, dns.TypeA, "192.0.2.1")
}

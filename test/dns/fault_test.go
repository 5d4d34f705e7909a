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

// reader is what the plugin's account may do.
const reader = `apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: clusterset-reader}
rules:
- {apiGroups: [multicluster.x-k8s.io], resources: [serviceimports], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
`

const readerBinding = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: clusterset-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: clusterset-reader}
subjects: [{kind: ServiceAccount, namespace: demo, name: coredns}]
`

func TestAnswersGoOnFromWhatIsKnown(t *testing.T) {
	cluster := breakable(t)[0]
	demo := namespace(t, cluster, "demo")
	demo.apply(reader)
	demo.apply(web("v1beta1", "10.42.0.1"))
	account, err := cluster.ServiceAccountKubeconfig(t.Context(), "demo", "coredns")
	path := kubeconfig(t, account, err)
	ready := freeAddress(t)
	s := beside(t, path, ready)

	// Without the rights there is no harm to other zones, and granting them is all it takes.
	s.until(webName, dns.TypeA, "SERVFAIL")
	s.until(otherName, dns.TypeA, "192.0.2.1")
	expectReady(t, ready)
	demo.apply(readerBinding)
	s.until(webName, dns.TypeA, "10.42.0.1")

	// The rights are revoked, and the watch begins anew.
	demo.delete("ClusterRoleBinding", "v1", "clusterset-reader")
	restart(t, cluster)
	s.untilRefused("forbidden")
	demo.apply(web("v1beta1", "10.42.0.2"))
	s.expect(webName, dns.TypeA, "10.42.0.1")
	expectReady(t, ready)
	demo.apply(readerBinding)
	s.until(webName, dns.TypeA, "10.42.0.2")

	// The CRD is deleted while the plugin cannot see that, and is found missing.
	demo.delete("ClusterRoleBinding", "v1", "clusterset-reader")
	restart(t, cluster)
	s.untilRefused("forbidden")
	if err := cluster.InstallCRDs(t.Context(), controlplane.CRDsNone); err != nil {
		t.Fatal(err)
	}
	demo.apply(readerBinding)
	s.untilRefused("not_found")
	s.expect(webName, dns.TypeA, "10.42.0.2")
	expectReady(t, ready)
	if err := cluster.InstallCRDs(t.Context(), controlplane.CRDsAll); err != nil {
		t.Fatal(err)
	}
	demo.apply(web("v1beta1", "10.42.0.3"))
	s.until(webName, dns.TypeA, "10.42.0.3")

	// The API server hangs.
	if err := cluster.APIServer().Freeze(); err != nil {
		t.Fatal(err)
	}
	s.expect(webName, dns.TypeA, "10.42.0.3")
	if err := cluster.APIServer().Thaw(); err != nil {
		t.Fatal(err)
	}
	demo.apply(web("v1beta1", "10.42.0.4"))
	s.until(webName, dns.TypeA, "10.42.0.4")
	demo.delete("ClusterRoleBinding", "v1", "clusterset-reader")
}

// restart kills the API server and starts it: all watches begin anew.
func restart(t *testing.T, cluster *controlplane.Cluster) {
	t.Helper()
	if err := cluster.APIServer().Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.APIServer().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// untilRefused waits until the API server refuses ServiceImports for the reason once more.
func (s *server) untilRefused(reason string) {
	s.t.Helper()
	refused := func() float64 {
		return metric(s.t, "coredns_multicluster_watch_errors_total", "serviceimports", reason)
	}
	before := refused()
	wait(s.t, func() error {
		if refused() == before {
			return fmt.Errorf("nothing was refused as %s", reason)
		}
		return nil
	})
}

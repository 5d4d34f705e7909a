// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

// addNode makes a node whose clients are of a range of loopback addresses, so that they can ask.
func addNode(t testing.TB, cluster *controlplane.Cluster, name, zone, region, pods string) {
	t.Helper()
	nodes := cluster.Client().CoreV1().Nodes()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: region},
		},
		Spec: corev1.NodeSpec{PodCIDR: pods, PodCIDRs: []string{pods}},
	}
	if _, err := nodes.Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nodes.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// askFrom is what a client with that address is answered.
func (s *server) askFrom(source, qname string, qtype uint16) string {
	s.t.Helper()
	client := dns.Client{Timeout: soon, Dialer: &net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(source)}}}
	r := new(dns.Msg).SetQuestion(qname, qtype)
	r.SetEdns0(4096, false)
	reply, _, err := client.Exchange(r, s.address("udp"))
	if err != nil {
		s.t.Fatalf("%s from %s: %v", qname, source, err)
	}
	return textOf(reply)
}

const (
	preferPorts = "[{name: sql, port: 5432}]"
	clientInA   = "127.1.0.7"
)

// TestRightsThatComeLater: without rights the zone fails, and nothing else. Names wait for no nodes: without the right
// to see those, clients prefer their cluster, and their zone once there is one.
func TestRightsThatComeLater(t *testing.T) {
	cluster := clusters(t)[0]
	addNode(t, cluster, "prefer-a", "zone-a", "region", "127.1.0.0/24")
	o := namespace(t, cluster, "prefer-rights")
	o.apply(serviceImport("db", "{type: Headless, ports: "+preferPorts+"}") +
		endpointSlice("db", "east", "IPv4", preferPorts, "{addresses: [10.1.0.1], zone: zone-a}",
			"{addresses: [10.1.0.2], zone: zone-b}") +
		endpointSlice("db", "west", "IPv4", preferPorts, "{addresses: [10.2.0.1], zone: zone-a}",
			"{addresses: [10.2.0.2], zone: zone-b}",
			"{addresses: [10.2.0.3], zone: zone-c}"))
	o.apply(`apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prefer-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: prefer-reader}
subjects: [{kind: ServiceAccount, name: coredns, namespace: prefer-rights}]
`)
	account, err := clusterset.WriteCredential(t.Context(), cluster, "prefer-rights", "coredns")
	must(t, err)
	ready := freeAddress(t).String()
	s := serve(t, fmt.Sprintf(`.:0 {
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
			cluster east
			prefer zone
		}
	}`, ready, account))
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: prefer-reader}\nrules:\n"
	for _, step := range []struct{ rules, want string }{
		{"", "SERVFAIL"},
		{`- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
- {apiGroups: [multicluster.x-k8s.io], resources: [serviceimports], verbs: [list, watch]}
`, "10.1.0.1 10.1.0.2"},
		{"- {apiGroups: [''], resources: [nodes], verbs: [list, watch]}\n", "10.1.0.1 10.2.0.1"},
	} {
		role += step.rules
		o.apply(role)
		wait(t, func() error {
			if got := s.askFrom(clientInA, "db.prefer-rights.svc.clusterset.local.", dns.TypeA); got != step.want {
				return fmt.Errorf("with the rules %q: %s, want %s", step.rules, got, step.want)
			}
			return nil
		})
		s.expect("a.example.org.", dns.TypeA, "192.0.2.1")
		expectReady(t, ready)
	}
}

// expectReady asks the ready plugin, more than once, since what is ready now may not stay so.
func expectReady(t *testing.T, address string) {
	t.Helper()
	for range 20 {
		response, err := http.Get("http://" + address + "/ready")
		must(t, err)
		must(t, response.Body.Close())
		if response.StatusCode != http.StatusOK {
			t.Fatalf("the server is not ready: %s", response.Status)
		}
	}
}

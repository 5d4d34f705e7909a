// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

// addNode makes a node whose clients are of a range of loopback addresses, so that they can ask.
func addNode(t testing.TB, cluster *controlplane.Cluster, name, zone, region, pods string) {
	t.Helper()
	nodes := cluster.Client().CoreV1().Nodes()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: region}},
		Spec:       corev1.NodeSpec{PodCIDR: pods, PodCIDRs: []string{pods}},
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

// preferring is a server with these lines in its block.
func preferring(t testing.TB, config string, lines ...string) *server {
	t.Helper()
	return serve(t, fmt.Sprintf(`clusterset.local:0 {
		bind 127.0.0.1
		multicluster {
			kubeconfig %s
			%s
		}
	}`, config, strings.Join(lines, "\n")))
}

const (
	preferPorts = "[{name: sql, port: 5432}]"
	clientInA   = "127.1.0.7"
	clientInB   = "127.2.0.7"
	stranger    = "127.0.0.1"
)

// preferred is a headless service with endpoints in each tier of a client in zone-a of east.
func preferred(t testing.TB, cluster *controlplane.Cluster, name string) objects {
	t.Helper()
	o := namespace(t, cluster, name)
	o.apply(serviceImport("v1beta1", "db", "{type: Headless, ports: "+preferPorts+"}") +
		endpointSlice("db", "east", "IPv4", preferPorts, "{addresses: [10.1.0.1], zone: zone-a}", "{addresses: [10.1.0.2], zone: zone-b}") +
		endpointSlice("db", "west", "IPv4", preferPorts, "{addresses: [10.2.0.1], zone: zone-a}", "{addresses: [10.2.0.2], zone: zone-b}",
			"{addresses: [10.2.0.3], zone: zone-c}"))
	return o
}

// TestNamesDoNotWaitForNodes: without the right to see nodes clients prefer their cluster, and their zone once there is
// one.
func TestNamesDoNotWaitForNodes(t *testing.T) {
	cluster := clusters(t)[0]
	addNode(t, cluster, "prefer-a", "zone-a", "region", "127.1.0.0/24")
	o := preferred(t, cluster, "prefer-rights")
	role := func(more string) string {
		return `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: prefer-reader}
rules:
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
- {apiGroups: [multicluster.x-k8s.io], resources: [serviceimports], verbs: [list, watch]}
` + more
	}
	o.apply(role("") + `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prefer-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: prefer-reader}
subjects: [{kind: ServiceAccount, name: coredns, namespace: prefer-rights}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns}
`)
	account, err := cluster.ServiceAccountKubeconfig(t.Context(), "prefer-rights", "coredns")
	s := preferring(t, kubeconfig(t, account, err), "cluster east", "prefer zone")
	const qname = "db.prefer-rights.svc.clusterset.local."
	for _, step := range []struct{ rule, want string }{
		{"", "10.1.0.1 10.1.0.2"},
		{"- {apiGroups: [''], resources: [nodes], verbs: [list, watch]}\n", "10.1.0.1 10.2.0.1"},
	} {
		o.apply(role(step.rule))
		wait(t, func() error {
			if got := s.askFrom(clientInA, qname, dns.TypeA); got != step.want {
				return fmt.Errorf("with the rule %q: %s, want %s", step.rule, got, step.want)
			}
			return nil
		})
	}
}

// TestEqualAnswersRotate: with CoreDNS's own loadbalance each endpoint of a tier is the first one alike often.
func TestEqualAnswersRotate(t *testing.T) {
	cluster := clusters(t)[0]
	preferred(t, cluster, "rotate").apply(endpointSlice("db", "east", "IPv4", preferPorts,
		"{addresses: [10.1.0.1, 10.1.0.2, 10.1.0.3, 10.1.0.4, 10.1.0.5, 10.1.0.6]}"))
	s := serve(t, fmt.Sprintf(`clusterset.local:0 {
		bind 127.0.0.1
		loadbalance
		multicluster {
			kubeconfig %s
			cluster east
			prefer cluster
			%s
		}
	}`, admin(t, cluster), patient))
	const asked, endpoints = 3000, 6
	first := map[string]int{}
	for range asked {
		reply := s.query("db.rotate.svc.clusterset.local.", dns.TypeA)
		if len(reply.Answer) != endpoints {
			t.Fatalf("%d records", len(reply.Answer))
		}
		first[reply.Answer[0].(*dns.A).A.String()]++
	}
	chiSquare := 0.0
	for address, times := range first {
		if !strings.HasPrefix(address, "10.1.") {
			t.Errorf("%s is of another cluster", address)
		}
		difference := float64(times) - asked/endpoints
		chiSquare += difference * difference / (asked / endpoints)
	}
	// With five degrees of freedom, a chance of less than one in a million.
	if len(first) != endpoints || chiSquare > 36 {
		t.Errorf("chi-square is %.1f for %v", chiSquare, first)
	}
}

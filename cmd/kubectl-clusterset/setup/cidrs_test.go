// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// TestJoinConfinesMembers to the pod ranges of their nodes, unless their pods have other addresses. A range that an
// administrator has set stays, and so does what is unknown now.
func TestJoinConfinesMembers(t *testing.T) {
	const unset = "annotate secret member-west clusterset-dns.github.io/cidrs=<ranges of its pods>`"
	for name, test := range map[string]struct {
		nodes           []string // their podCIDRs
		pods            []string // their addresses; an @ before one is of the host network
		addresses       []string // of the first node
		network, reader string   // of west and east
		forbidden, had  string
		want, wantsSaid string
	}{
		"nodes": {
			nodes: []string{"10.1.0.0/24 fd00:1::/64", "10.1.1.0/24", "10.1.1.0/24"}, pods: []string{"10.1.1.7", "@192.0.2.1"},
			want: "10.1.0.0/24,fd00:1::/64,10.1.1.0/24", wantsSaid: "west to 3 ranges of its nodes",
		},
		"nodes of another network": {
			nodes: []string{"10.1.0.0/24"}, addresses: []string{"192.0.2.7", "2001:db8::7", "host"}, network: "b",
			want: "10.1.0.0/24,192.0.2.0/24,2001:db8::/64",
		},
		"nodes of no named network":    {nodes: []string{"10.1.0.0/24"}, addresses: []string{"192.0.2.7"}, reader: "b", want: "10.1.0.0/24,192.0.2.0/24"},
		"nodes of the same network":    {nodes: []string{"10.1.0.0/24"}, addresses: []string{"192.0.2.7"}, want: "10.1.0.0/24"},
		"nodes of the same named one":  {nodes: []string{"10.1.0.0/24"}, addresses: []string{"192.0.2.7"}, network: "b", reader: "b", want: "10.1.0.0/24"},
		"a node more":                  {nodes: []string{"10.1.0.0/24", "10.1.1.0/24"}, had: "10.1.0.0/24", want: "10.1.0.0/24,10.1.1.0/24"},
		"the whole range, set by hand": {nodes: []string{"10.1.0.0/24"}, had: "10.1.0.0/16, 10.9.0.0/16", want: "10.1.0.0/16,10.9.0.0/16"},
		"an invalid one":               {nodes: []string{"10.1.0.0/24"}, had: "everywhere", want: "10.1.0.0/24"},
		"no podCIDRs":                  {nodes: []string{""}, wantsSaid: "because its nodes have no spec.podCIDRs: `"},
		"no podCIDRs, but set by hand": {nodes: []string{""}, had: "10.1.0.0/16", want: "10.1.0.0/16"},
		"a CNI with other ranges": {
			nodes: []string{"10.1.0.0/24"}, pods: []string{"10.1.0.3", "10.64.0.1"},
			wantsSaid: "pod default/p1 has the address 10.64.0.1, outside of the podCIDRs of the nodes: `",
		},
		"nodes that the user may not list": {nodes: []string{"10.1.0.0/24"}, forbidden: "nodes", wantsSaid: unset},
		"pods that the user may not list":  {nodes: []string{"10.1.0.0/24"}, forbidden: "pods", wantsSaid: unset},
	} {
		west, east := joined("west"), joined("east", "west")
		add := func(c *cluster.Cluster, object runtime.Object) {
			if err := c.Kube.(*fake.Clientset).Tracker().Add(object); err != nil {
				t.Fatal(err)
			}
		}
		for i, ranges := range test.nodes {
			node := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "n" + string('0'+rune(i))}, Spec: corev1.NodeSpec{PodCIDRs: strings.Fields(ranges)},
			}
			for _, address := range test.addresses {
				node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Address: address})
			}
			add(west, node)
		}
		for i, address := range test.pods {
			ip, host := strings.CutPrefix(address, "@")
			add(west, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p" + string('0'+rune(i))},
				Spec:       corev1.PodSpec{HostNetwork: host}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: ip}}},
			})
		}
		for c, network := range map[*cluster.Cluster]string{west: test.network, east: test.reader} {
			leases := c.Kube.CoordinationV1().Leases(system)
			lease, err := leases.Get(t.Context(), cluster.HeartbeatLease, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			lease.Annotations = map[string]string{cluster.PropertiesAnnotation: `{"network.clusterset-dns.github.io":"` + network + `"}`}
			if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		west.Kube.(*fake.Clientset).PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.GetResource().Resource == test.forbidden, nil, errors.New("forbidden")
		})
		var said bytes.Buffer
		o := quiet(time.Minute, verified(t, west, east)...)
		o.DryRun, o.Teller.Out = true, &said
		secret, err := east.Kube.CoreV1().Secrets(system).Get(t.Context(), "member-west", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if test.had != "" {
			secret.Annotations = map[string]string{cluster.CIDRsAnnotation: test.had}
			if _, err := east.Kube.CoreV1().Secrets(system).Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := Join(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		secret, err = east.Kube.CoreV1().Secrets(system).Get(t.Context(), "member-west", metav1.GetOptions{})
		if got := secret.Annotations[cluster.CIDRsAnnotation]; err != nil || got != test.want || !strings.Contains(said.String(), test.wantsSaid) ||
			strings.Contains(said.String(), unset) != (test.want == "") {
			t.Errorf("%s: got %q, want %q; it says\n%s", name, got, test.want, said.String())
		}
	}
}

// TestJoinVerifiesAPIServers: over an unverified connection, another could give its own certificate authority, and read the
// token.
func TestJoinVerifiesAPIServers(t *testing.T) {
	east, west := joined("east"), joined("west")
	east.Config, west.Config = &rest.Config{}, &rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	err := Join(t.Context(), quiet(time.Minute, east, west))
	if err == nil || !strings.Contains(err.Error(), "context admin@west: ") || !strings.Contains(err.Error(), "insecure-skip-tls-verify") {
		t.Errorf("got %v", err)
	}
	for _, c := range []*cluster.Cluster{east, west} {
		if actions := c.Kube.(*fake.Clientset).Actions(); len(actions) > 0 {
			t.Errorf("%s: %v", c.Context, actions)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// TestJoinConfinesMembers to the pod ranges of their nodes, unless their pods have other addresses. A range that an
// administrator has set stays, and so do ranges that are unknown now.
func TestJoinConfinesMembers(t *testing.T) {
	for name, test := range map[string]struct {
		nodes          []string // their podCIDRs
		pods           []string // their addresses; an @ before one is of the host network
		addresses      []string // of the nodes
		behind         string   // NAT with addresses
		exposed        bool
		forbidden, had string
		want, wantErr  string
	}{
		"nodes": {
			nodes: []string{"10.1.0.0/24 fd00:1::/64", "10.1.1.0/24", "10.1.1.0/24"}, pods: []string{"10.1.1.7", "@192.0.2.1"},
			want: "10.1.0.0/24,fd00:1::/64,10.1.1.0/24",
		},
		"nodes of another network": {
			nodes: []string{"10.1.0.0/24"}, addresses: []string{"192.0.2.7", "2001:db8::7", "host"}, exposed: true,
			want: "10.1.0.0/24,192.0.2.0/24,2001:db8::/64",
		},
		"nodes behind NAT": {
			nodes: []string{"10.1.0.0/24"}, addresses: []string{"10.0.0.7"}, behind: "203.0.113.7, 2001:db8::7", exposed: true,
			want: "10.1.0.0/24,203.0.113.0/24,2001:db8::/64",
		},
		"nodes of the same network":    {nodes: []string{"10.1.0.0/24"}, addresses: []string{"192.0.2.7"}, want: "10.1.0.0/24"},
		"a node more":                  {nodes: []string{"10.1.0.0/24", "10.1.1.0/24"}, had: "10.1.0.0/24", want: "10.1.0.0/24,10.1.1.0/24"},
		"the whole range, set by hand": {nodes: []string{"10.1.0.0/24"}, had: "10.1.0.0/16, 10.9.0.0/16", want: "10.1.0.0/16,10.9.0.0/16"},
		"an invalid one":               {nodes: []string{"10.1.0.0/24"}, had: "everywhere", want: "10.1.0.0/24"},
		"no podCIDRs":                  {nodes: []string{""}, wantErr: "its nodes have no spec.podCIDRs"},
		"no podCIDRs, but set by hand": {nodes: []string{""}, had: "10.1.0.0/16", want: "10.1.0.0/16", wantErr: "its nodes have no spec.podCIDRs"},
		"a CNI with other ranges": {
			nodes: []string{"10.1.0.0/24"}, pods: []string{"10.1.0.3", "10.64.0.1"},
			wantErr: "pod default/p1 has the address 10.64.0.1, outside of the podCIDRs of the nodes",
		},
		"nodes that the user may not list": {nodes: []string{"10.1.0.0/24"}, forbidden: "nodes", wantErr: "forbidden"},
		"pods that the user may not list":  {nodes: []string{"10.1.0.0/24"}, forbidden: "pods", wantErr: "forbidden"},
	} {
		var objects []runtime.Object
		for i, ranges := range test.nodes {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}, Spec: corev1.NodeSpec{PodCIDRs: strings.Fields(ranges)}}
			node.Annotations = map[string]string{cluster.AddressAnnotation: test.behind}
			for _, address := range test.addresses {
				node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Address: address})
			}
			objects = append(objects, node)
		}
		for i, address := range test.pods {
			ip, host := strings.CutPrefix(address, "@")
			objects = append(objects, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i)},
				Spec:       corev1.PodSpec{HostNetwork: host}, Status: corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: ip}}},
			})
		}
		client := fake.NewClientset(objects...)
		client.PrependReactor("list", test.forbidden, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("forbidden")
		})
		ranges, err := confinement(t.Context(), &cluster.Cluster{Kube: client}, test.exposed)
		if got := confined(test.had, ranges); got != test.want || fmt.Sprint(err) != cmp.Or(test.wantErr, "<nil>") {
			t.Errorf("%s: got %q, %v; want %q, %s", name, got, err, test.want, test.wantErr)
		}
	}
}

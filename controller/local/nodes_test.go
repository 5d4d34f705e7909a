// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// TestOwns: a cluster owns the addresses of its nodes and Services, and exposed addresses of its pods.
func TestOwns(t *testing.T) {
	c := New(fake.NewClientset(), &informer.FreshnessGate{}, "", "")
	must(t, c.Nodes.Indexer().Add(&Node{
		ObjectMeta: metav1.ObjectMeta{Name: "one"}, Node: export.Node{Own: []string{"192.0.2.7"}}, PodCIDRs: []string{"10.1.0.0/24"},
	}))
	// The range of this one is in a ServiceCIDR that was added later.
	must(t, c.Services.Indexer().Add(&corev1.Service{Spec: corev1.ServiceSpec{ClusterIPs: []string{"10.97.0.10", "2001:db8:1::a"}}}))
	owns := c.Owns([]netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("2001:db8::/112")})
	for address, want := range map[string][2]bool{
		"192.0.2.7": {true, true}, "192.0.2.8": {}, "10.96.0.10": {true, true}, "2001:db8::9": {true, true}, "10.1.0.9": {false, true},
		"10.97.0.10": {true, true}, "2001:db8:1::a": {true, true}, "10.97.0.11": {},
	} {
		if pod, exposed := owns(address, false), owns(address, true); pod != want[0] || exposed != want[1] {
			t.Errorf("%s is owned: %t, exposed %t", address, pod, exposed)
		}
	}
}

// TestNodesWithoutZone: a new node gets its zone from the cloud provider.
func TestNodesWithoutZone(t *testing.T) {
	c := New(fake.NewClientset(), &informer.FreshnessGate{}, "", "")
	for name, taint := range map[string]string{"new": "node.cloudprovider.kubernetes.io/uninitialized", "other": corev1.TaintNodeNotReady} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: taint}}}}
		must(t, c.Nodes.Indexer().Add(kept(node, "")))
	}
	if without := c.NodesWithoutZone(); len(without) != 1 || without[0] != "other" {
		t.Errorf("without a zone are %q", without)
	}
}

// TestNode: other networks reach a node by its addresses of a type, or by the addresses in its annotation, one of each family.
func TestNode(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelTopologyZone: "a"}}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: "True"}, {Type: corev1.NodeDiskPressure, Status: "False"}},
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: "one"},
			{Type: corev1.NodeInternalIP, Address: "192.0.2.7"},
			{Type: corev1.NodeInternalIP, Address: "2001:DB8::7"},
			{Type: corev1.NodeInternalIP, Address: "192.0.2.8"},
			{Type: corev1.NodeExternalIP, Address: "203.0.113.7"},
		},
	}}
	for _, test := range []struct {
		of               corev1.NodeAddressType
		annotation, want string
	}{
		{corev1.NodeInternalIP, "", "[192.0.2.7 2001:db8::7]"},
		{corev1.NodeExternalIP, "", "[203.0.113.7]"},
		{corev1.NodeExternalIP, "2001:DB8::9, 198.51.100.7,198.51.100.8, none", "[2001:db8::9 198.51.100.7]"},
		{corev1.NodeExternalIP, "none", "[]"},
	} {
		node.Annotations = map[string]string{export.AnnotationNodeAddress: test.annotation}
		is := kept(node, test.of)
		if got := fmt.Sprint(is.Addresses); got != test.want || !is.Ready || is.Zone != "a" ||
			fmt.Sprint(is.Own) != "[192.0.2.7 2001:db8::7 192.0.2.8 203.0.113.7]" {
			t.Errorf("%s %q: got %+v, want %s", test.of, test.annotation, is.Node, test.want)
		}
	}
	node.Status.Conditions[0].Status, node.Status.Conditions[1].Status = "Unknown", "True"
	if kept(node, "").Ready {
		t.Error("a node that is not heard of is ready")
	}
}

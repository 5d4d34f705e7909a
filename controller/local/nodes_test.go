// SPDX-License-Identifier: Apache-2.0

package local

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// TestOwns: addresses of nodes and Services are this cluster's, and those of pods if they are exposed.
func TestOwns(t *testing.T) {
	c := New(fake.NewClientset(), &informer.FreshnessGate{}, "")
	if err := c.Nodes.Indexer().Add(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: corev1.NodeSpec{PodCIDRs: []string{"10.1.0.0/24"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "192.0.2.7"}}},
	}); err != nil {
		t.Fatal(err)
	}
	owns := c.Owns([]netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("2001:db8::/112")})
	for address, want := range map[string][2]bool{
		"192.0.2.7": {true, true}, "192.0.2.8": {}, "10.96.0.10": {true, true}, "2001:db8::9": {true, true}, "10.1.0.9": {false, true},
	} {
		if pod, exposed := owns(address, false), owns(address, true); pod != want[0] || exposed != want[1] {
			t.Errorf("%s is owned: %t, exposed %t", address, pod, exposed)
		}
	}
}

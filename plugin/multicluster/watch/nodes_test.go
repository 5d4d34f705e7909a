// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/record"
)

func node(name, zone, address string, ranges ...string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}},
		Spec:       corev1.NodeSpec{PodCIDRs: ranges},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeExternalIP, Address: "192.0.2.1"},
		}},
	}
}

// TestNodesTellWhereClientsAre adds, changes and removes nodes. Addresses of endpoints end in 1 in zone a, and in 2 in
// zone b.
func TestNodesTellWhereClientsAre(t *testing.T) {
	b := newBench(t, Options{Nodes: true})
	nodes := b.storeOf(Nodes)
	slice := sliceOf("a", "db", "east", "10.1.0.1", "10.1.0.2")
	slice.Endpoints[0].Zone, slice.Endpoints[1].Zone = new("a"), new("b")
	put(t, b.imports.Add(importOf("db", mcsv1beta1.Headless)))
	put(t, b.slices.Add(slice))
	b.list()
	after := func(changed error, step, client, want string) {
		t.Helper()
		put(t, changed)
		b.drain()
		at := record.Client{Size: 65535, Zone: b.Topology().Zone(netip.MustParseAddr(client))}
		if got := strings.ReplaceAll(replyTo(b.Index(), "db", record.PreferZone, at), "10.1.0.", ""); got != want {
			t.Errorf("%s: %s is answered with %s, want %s", step, client, got, want)
		}
	}
	after(nodes.Replace([]any{node("one", "a", "172.16.0.1", "10.64.1.7/24", "fd00:1::/64")}, "1"), "a pod", "10.64.1.9", "1")
	after(nil, "a pod with IPv6", "fd00:1::9", "1")
	after(nil, "the node itself", "172.16.0.1", "1")
	after(nil, "nobody's", "10.64.2.9", "1 2")
	after(nil, "an address that others share", "192.0.2.1", "1 2")
	after(nodes.Add(node("two", "b", "172.16.0.2", "10.64.2.0/24")), "a node that comes", "10.64.2.9", "2")
	after(nodes.Update(node("one", "b", "", "10.64.1.0/24")), "a node that moves", "10.64.1.9", "2")
	after(nodes.Update(node("one", "", "", "10.64.1.0/24")), "a node without a zone", "10.64.1.9", "1 2")
	after(nodes.Delete(node("two", "b", "")), "a node that goes", "10.64.2.9", "1 2")
	after(nodes.Replace([]any{node("two", "b", "", "not-a-range", "10.64.2.0/24")}, "2"), "another list", "10.64.2.9", "2")
	after(nodes.Add(node("four", "a", "10.64.2.200", "10.64.2.0/24", "10.64.2.0/23")), "a node alone in a wider range", "10.64.3.9", "1")
	after(nil, "a range of nodes in two zones", "10.64.2.9", "2")
	after(nil, "the longest range", "10.64.2.200", "1")

	before := b.Topology()
	beat := node("two", "b", "", "not-a-range", "10.64.2.0/24")
	beat.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}}
	put(t, nodes.Update(beat))
	if times := b.drain(); times != 0 || b.Topology() != before {
		t.Errorf("a sign of life was published %d times", times)
	}
}

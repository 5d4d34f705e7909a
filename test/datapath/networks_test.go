// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

// acrossNetworks are the stories of clusters that reach each other only at node ports.
var acrossNetworks = []story{
	{"share the load", shareTheLoad},
	{"a pod, and a node, are not ready", failures},
	{"drain", drain},
	{"path between nodes is cut", podNetworkCut},
}

// Load balancers and Gateways are tested in one mode: nginx forwards the connections.
func TestNetworksNFTables(t *testing.T) {
	tellAll(t, newBed(t, "nftables", true), append(acrossNetworks, story{"load balancers and Gateways", frontends}))
}

func TestNetworksIPTables(t *testing.T) { tellAll(t, newBed(t, "iptables", true), acrossNetworks) }

// The ranges of clusters between which pods are not routed: all have the same.
var (
	samePods     = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/32")}
	sameServices = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:96::/112")}
)

// separate sets the ranges of clusters.
func separate(options []controlplane.Options) {
	for i := range options {
		o := &options[i]
		o.PodCIDRs, o.ServiceCIDRs = samePods, sameServices
		o.NodeCIDRs = []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(16 + i)}), 16),
			netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 1, 0, byte(i)}), 32),
		}
	}
}

// separate puts a router between the nodes of the cluster and the other clusters: only that router has a route to its pods.
func (c *cluster) separate(t testing.TB) {
	c.reached = c.Options().NodeCIDRs
	var addresses []netip.Addr
	for _, nodes := range c.reached {
		addresses = append(addresses, nodes.Masked().Addr().Next())
	}
	c.uplink = c.attach(t, router, addresses, c.reached...)
}

// masquerade translates the source of packets from pods to anything except pods to the address of their node, as a CNI does.
func masquerade(t testing.TB, n *node) {
	must(t, n.Filter(fmt.Sprintf(`table inet cni {
chain postrouting {
type nat hook postrouting priority srcnat
ip saddr %[1]s ip daddr != %[1]s masquerade
ip6 saddr %[2]s ip6 daddr != %[2]s masquerade
}
}
`, samePods[0], samePods[1])))
}

// failures: a node serves clients of other clusters while it is ready and has a ready or terminating pod. If its only pod
// becomes unready, its own kube-proxy may sync before the others, and the node drops connections until they have synced.
func failures(t *testing.T, b *bed) {
	s := service{namespace: b.namespace(t), name: "failing", ports: http80}
	east, west := b.east.deploy(t, s, 2), b.west.deploy(t, s, 1)
	client := b.north.client(t, s.namespace, 0)
	watched := client.watch(t, 300*time.Millisecond, s.at(80))
	watched.only(t, time.Now(), "east", "west")
	client.settled(t, "tcp4", s.at(80), slices.Concat(east, west)...)
	setNode := func(ready bool) { must(t, b.east.SetNodeReady(t.Context(), b.east.nodes[0].name, ready)) }
	for _, step := range []struct {
		name string
		do   func()
		by   []*pod
		only []string // the clusters that answer after connections were lost; nil if none may be lost
	}{
		{"a node is not ready", func() { setNode(false) }, []*pod{east[1], west[0]}, nil},
		{"the node is ready again", func() { setNode(true) }, slices.Concat(east, west), nil},
		{"the pod of a node terminates", func() { east[0].terminate(t) }, []*pod{east[1], west[0]}, nil},
		{"the last pod is not ready", func() { east[1].setReady(t, false) }, west, []string{"west"}},
		{"it is ready again", func() { east[1].setReady(t, true) }, []*pod{east[1], west[0]}, nil},
	} {
		begin := time.Now()
		step.do()
		var took time.Duration
		if step.only != nil { // settling would wait for the timeout of each lost connection
			took = watched.only(t, begin, step.only...)
		}
		took = max(took, client.settled(t, "tcp4", s.at(80), step.by...))
		counted := watched.since(t, begin)
		t.Logf("%s: after %s, %s", step.name, seconds(took), counted)
		if counted.Lost() > 0 && step.only == nil {
			t.Errorf("%s: connections were lost", step.name)
		}
	}
}

// terminate deletes the pod, which continues to serve.
func (p *pod) terminate(t testing.TB) {
	p.cluster.patch(t, "pods.v1.", p.namespace, p.name, `{"metadata":{"finalizers":["example.org/serves"]}}`)
	must(t, p.cluster.CoreV1().Pods(p.namespace).Delete(t.Context(), p.name, metav1.DeleteOptions{}))
}

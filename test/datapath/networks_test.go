// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

// acrossNetworks are the stories of clusters that reach each other only at node ports.
var acrossNetworks = []story{
	{"share the load", shareTheLoad},
	{"ports", ports},
	{"a pod, and a node, are not ready", failures},
	{"drain", drain},
	{"path between nodes is cut", podNetworkCut},
	{"change a network", changeNetwork},
	{"load balancers and Gateways", frontends},
	{"weights", weights},
}

func TestNetworksNFTables(t *testing.T) { tellAll(t, newBed(t, "nftables", true), acrossNetworks) }

func TestNetworksIPTables(t *testing.T) { tellAll(t, newBed(t, "iptables", true), acrossNetworks) }

// The ranges of clusters between which pods are not routed. All have the same Service range, and the same pod range
// except north, so that east and north can share a flat network.
var (
	samePods     = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("fd00:244::/32")}
	northPods    = []netip.Prefix{netip.MustParsePrefix("10.245.0.0/16"), netip.MustParsePrefix("fd00:245::/32")}
	allPods      = []netip.Prefix{netip.MustParsePrefix("10.244.0.0/15"), netip.MustParsePrefix("fd00:244::/31")}
	sameServices = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:96::/112")}
)

// separate sets the ranges of clusters, and gives each cluster at least two nodes.
func separate(options []controlplane.Options) {
	for i := range options {
		o := &options[i]
		o.PodCIDRs, o.ServiceCIDRs = samePods, sameServices
		if o.Name == "north" {
			o.PodCIDRs, o.Zones = northPods, []string{"c", "c"}
		}
		o.NodeCIDRs = []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{172, byte(16 + i)}), 16),
			netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, 1, 0, byte(i)}), 32),
		}
	}
}

// separate puts a router between the nodes of the cluster and the other clusters: only that router has a route to its pods.
func (c *cluster) separate(t testing.TB) {
	c.reached = c.Options().NodeCIDRs
	c.uplink = c.attach(t, router, c.gateways(), c.reached...)
}

// gateways returns the addresses of the router of the cluster.
func (c *cluster) gateways() (addresses []netip.Addr) {
	for _, nodes := range c.Options().NodeCIDRs {
		addresses = append(addresses, nodes.Masked().Addr().Next())
	}
	return addresses
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
`, allPods[0], allPods[1])))
}

// manyAddresses returns addresses of the cluster in addition to those of its nodes.
func (c *cluster) manyAddresses() (addresses []netip.Addr) {
	base := c.reached[0].Masked().Addr().As4()
	base[2]++ // far from the addresses of the router and the nodes
	for i := range many - 1 {
		base[3] = byte(i + 1)
		addresses = append(addresses, netip.AddrFrom4(base))
	}
	return addresses
}

// addAddresses adds the addresses of nonexistent nodes to the first node, before its kube-proxy starts.
func (c *cluster) addAddresses(t testing.TB, n *node) {
	addresses := c.manyAddresses()
	must(t, n.AddAddress(addresses...))
	must(t, c.uplink.Route(n.addresses[0], netip.PrefixFrom(addresses[0], 25).Masked()))
}

// addNodes creates the Node objects for these addresses. It returns the names of the first node and of these nodes.
func (c *cluster) addNodes(t testing.TB) []string {
	names := []string{c.nodes[0].name}
	for i, address := range c.manyAddresses() {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-more-%d", c.Name(), i)},
			Status: corev1.NodeStatus{
				Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address.String()}},
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			},
		}
		_, err := c.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{})
		must(t, err)
		names = append(names, node.Name)
	}
	return names
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

// setNetwork restarts the controllers of the cluster one by one with a different flag --network.
func (c *cluster) setNetwork(t testing.TB, network string) {
	for _, r := range c.replicas {
		must(t, r.end())
		r.spec.Args = append(slices.Clip(r.spec.Args), "--network="+network) // the last flag takes precedence
		r.start()
	}
}

// changeNetwork: north moves to the network of east, so that their pods reach each other, and back. No connection is
// lost. West is always in another network.
func changeNetwork(t *testing.T, b *bed) {
	s := service{namespace: b.namespace(t), name: "moving", ports: http80}
	var pods []*pod
	for _, c := range b.all() {
		pods = append(pods, c.deploy(t, s, 2)...)
	}
	direct := pods[4].addresses[0].String() + ":8080"
	counted, err := b.west.client(t, s.namespace, 1).connect(t.Context(), 5, 2*time.Second, "tcp4", direct)
	must(t, err)
	if len(counted.Who()) > 0 {
		t.Errorf("pods of west reach pods of north: %s", counted)
	}
	for _, c := range []*cluster{b.east, b.north} {
		for i, gateway := range c.gateways() {
			must(t, router.Route(gateway, c.Options().PodCIDRs[i]))
		}
	}
	clients, watched, open := map[*cluster]*pod{}, map[*cluster]*stream{}, map[*cluster]*stream{}
	for _, c := range b.all() {
		clients[c] = c.client(t, s.namespace, 0)
		clients[c].settled(t, "tcp4", s.at(80), pods...)
		watched[c] = clients[c].watch(t, lossless, s.at(80))
		open[c] = clients[c].keepWith(t, b.north, "tcp4", s.at(80))
	}
	for _, step := range []struct {
		network string
		ranges  func(*cluster) []netip.Prefix // at which east and north reach each other
		cut     []way
	}{
		{"east", func(c *cluster) []netip.Prefix { return c.Options().PodCIDRs }, ways(b.east.reached, b.north.reached)},
		{"north", func(c *cluster) []netip.Prefix { return c.reached }, ways(samePods, northPods)},
	} {
		begin := time.Now()
		b.north.setNetwork(t, step.network)
		type ranges = map[*cluster][]netip.Prefix
		b.east.awaitEndpoints(t, s, len(pods), ranges{b.north: step.ranges(b.north), b.west: b.west.reached})
		b.north.awaitEndpoints(t, s, len(pods), ranges{b.east: step.ranges(b.east), b.west: b.west.reached})
		b.west.awaitEndpoints(t, s, len(pods), ranges{b.north: b.north.reached, b.east: b.east.reached})
		for _, c := range b.all() {
			watched[c].only(t, time.Now(), "east", "west", "north")
			what := fmt.Sprintf("north moves to network %s, from %s", step.network, c.Name())
			watched[c].intact(t, begin, what)
			open[c].stays(t, b.north, what)
		}
		// Packets use only the new way.
		undo, _ := b.drop(t, step.cut)
		for _, c := range []*cluster{b.east, b.north} {
			clients[c].reaches(t, 200, "tcp4", s.at(80), pods...)
		}
		undo()
	}
}

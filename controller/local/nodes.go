// SPDX-License-Identifier: Apache-2.0

package local

import (
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
)

// Indexes of the nodes.
const (
	// byZone: by their zone, empty for a node without a zone. A New one is left out: it gets its zone soon, and all imports that
	// prefer this cluster would change twice.
	byZone = "zone"
	// byAddress: by their IP addresses in canonical form.
	byAddress = "address"
)

// A Node has the cached fields of a node: those on which hints, the refusal of addresses and exposed exports depend.
type Node struct {
	metav1.ObjectMeta
	export.Node
	// PodCIDRs are the ranges of its pods.
	PodCIDRs []string
	// New is set until its cloud provider has initialized it.
	New bool
}

// newNodes returns the cache of the nodes. addresses is the type of the addresses by which other networks reach nodes. The
// cache has a gate of its own, so that no reconcile waits until nodes are read again.
func newNodes(client typedcorev1.NodeInterface, addresses corev1.NodeAddressType) informer.Of[*Node] {
	return informer.New[*Node](&informer.FreshnessGate{}, client, informer.Options{
		Resource: "Nodes", Example: &corev1.Node{},
		Indexers: cache.Indexers{
			byZone: func(object any) ([]string, error) {
				if node := object.(*Node); node.Zone != "" || !node.New {
					return []string{node.Zone}, nil
				}
				return nil, nil
			},
			byAddress: func(object any) ([]string, error) { return object.(*Node).Own, nil },
		},
		Transform: func(object any) (any, error) {
			if node, ok := object.(*corev1.Node); ok {
				return kept(node, addresses), nil
			}
			return object, nil
		},
	})
}

func kept(node *corev1.Node, addresses corev1.NodeAddressType) *Node {
	kept := &Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Node:       export.Node{Zone: node.Labels[corev1.LabelTopologyZone]}, PodCIDRs: node.Spec.PodCIDRs,
	}
	for _, taint := range node.Spec.Taints {
		kept.New = kept.New || taint.Key == "node.cloudprovider.kubernetes.io/uninitialized"
	}
	for _, each := range node.Status.Conditions {
		kept.Ready = kept.Ready || each.Type == corev1.NodeReady && each.Status == corev1.ConditionTrue
	}
	var texts []string
	for _, each := range node.Status.Addresses {
		if address, err := netip.ParseAddr(each.Address); err == nil {
			kept.Own = append(kept.Own, address.String())
		}
		if each.Type == addresses {
			texts = append(texts, each.Address)
		}
	}
	if text := node.Annotations[export.AnnotationNodeAddress]; text != "" {
		texts = strings.Split(text, ",")
	}
	for _, text := range texts {
		text = strings.TrimSpace(text)
		family := export.FamilyOf(text)
		if family != "" && !slices.ContainsFunc(kept.Addresses, func(a string) bool { return export.FamilyOf(a) == family }) {
			kept.Addresses = append(kept.Addresses, netip.MustParseAddr(text).String())
		}
	}
	return kept
}

// APIServer is the Service whose EndpointSlices have the addresses of the API server.
var APIServer = types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

// Owns returns a function that reports whether an address, in canonical form, is of a node, the API server or a Service, or in
// a range of Services or, if it is exposed, of pods. Unexposed addresses of other clusters' pods may be in a range of pods, as
// not every CNI uses spec.podCIDRs. Nodes that may not be listed do not count.
func (c *Cluster) Owns(services []netip.Prefix) func(address string, exposed bool) bool {
	var servers []string
	for _, slice := range c.KubernetesSlices(APIServer) {
		for i := range slice.Endpoints {
			servers = append(servers, slice.Endpoints[i].Addresses...)
		}
	}
	ranges := sync.OnceValue(func() (ranges []netip.Prefix) {
		for _, node := range c.Nodes.List() {
			for _, text := range node.PodCIDRs {
				if parsed, err := netip.ParsePrefix(text); err == nil {
					ranges = append(ranges, parsed)
				}
			}
		}
		return ranges
	})
	return func(address string, exposed bool) bool {
		if names, _ := c.Nodes.Indexer().IndexKeys(byAddress, address); len(names) > 0 || slices.Contains(servers, address) ||
			len(c.Services.ByIndex(byClusterIP, address)) > 0 { // ServiceCIDRs may add ranges
			return true
		}
		parsed, _ := netip.ParseAddr(address) // no prefix contains an invalid address
		holds := func(p netip.Prefix) bool { return p.Contains(parsed) }
		return slices.ContainsFunc(services, holds) || exposed && slices.ContainsFunc(ranges(), holds)
	}
}

// Node returns a node, and whether it exists.
func (c *Cluster) Node(name string) (export.Node, bool) {
	if node := c.Nodes.Get(types.NamespacedName{Name: name}); node != nil {
		return node.Node, true
	}
	return export.Node{}, false
}

// Zones returns the zones of the nodes, which hints depend on. Before the nodes are known there are no hints.
func (c *Cluster) Zones() placement.Nodes {
	if !c.Nodes.HasSynced() {
		return placement.Nodes{SomeWithoutZone: true}
	}
	zones := c.Nodes.Indexer().ListIndexFuncValues(byZone)
	slices.Sort(zones)
	if len(zones) > 0 && zones[0] == "" {
		return placement.Nodes{Zones: zones[1:], SomeWithoutZone: true}
	}
	return placement.Nodes{Zones: zones}
}

// NodesWithoutZone returns the names of the nodes on which hints have no effect.
func (c *Cluster) NodesWithoutZone() []string {
	names, _ := c.Nodes.Indexer().IndexKeys(byZone, "") // only an unknown index is an error
	return names
}

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
	// byZone: by their zone, empty for those that have none.
	byZone = "zone"
	// byAddress: by their IP addresses in canonical form.
	byAddress = "address"
)

// newNodes returns the cache of the nodes. It keeps the name of a node, the label of its zone, its addresses, the ranges of its
// pods and whether it is ready. Hints, the refusal of addresses and exposed exports depend on nodes, and none of them must
// hold the rest back, so the cache has a gate of its own: nothing else waits for it.
func newNodes(client typedcorev1.NodeInterface) *informer.Informer {
	return informer.New(&informer.FreshnessGate{}, client, informer.Options{
		Resource: "Nodes", Example: &corev1.Node{},
		Indexers: cache.Indexers{
			byZone:    func(object any) ([]string, error) { return []string{zoneOf(object)}, nil },
			byAddress: addressesOf,
		},
		Transform: func(object any) (any, error) {
			node, ok := object.(*corev1.Node)
			if !ok {
				return object, nil
			}
			kept := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
				Spec:       corev1.NodeSpec{PodCIDRs: node.Spec.PodCIDRs},
				Status:     corev1.NodeStatus{Addresses: node.Status.Addresses},
			}
			for _, condition := range node.Status.Conditions {
				if condition.Type == corev1.NodeReady {
					kept.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
				}
			}
			if address, set := node.Annotations[export.AnnotationNodeAddress]; set {
				kept.Annotations = map[string]string{export.AnnotationNodeAddress: address}
			}
			if zone := zoneOf(node); zone != "" {
				kept.Labels = map[string]string{corev1.LabelTopologyZone: zone}
			}
			return kept, nil
		},
	})
}

// addressesOf returns the IP addresses of a node.
func addressesOf(object any) (addresses []string, _ error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return nil, nil
	}
	for _, each := range node.Status.Addresses {
		if address, err := netip.ParseAddr(each.Address); err == nil {
			addresses = append(addresses, address.String())
		}
	}
	return addresses, nil
}

// APIServer is the Service whose EndpointSlices have the addresses of the API server.
var APIServer = types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

// Owns returns a function that reports whether a node or the API server has an address, which is in canonical form, or whether
// it is in a range of Services or, if it is exposed, of pods. The addresses of other clusters' pods may be there: not every CNI
// uses spec.podCIDRs. Nodes that are not known, because they may not be listed, have none.
func (c *Cluster) Owns(services []netip.Prefix) func(address string, exposed bool) bool {
	var servers []string
	for _, slice := range c.KubernetesSlices(APIServer) {
		for i := range slice.Endpoints {
			servers = append(servers, slice.Endpoints[i].Addresses...)
		}
	}
	nodes := c.Nodes.Indexer()
	ranges := sync.OnceValue(func() (ranges []netip.Prefix) {
		for _, node := range informer.List[*corev1.Node](nodes) {
			for _, text := range node.Spec.PodCIDRs {
				if parsed, err := netip.ParsePrefix(text); err == nil {
					ranges = append(ranges, parsed)
				}
			}
		}
		return ranges
	})
	return func(address string, exposed bool) bool {
		if names, _ := nodes.IndexKeys(byAddress, address); len(names) > 0 || slices.Contains(servers, address) {
			return true
		}
		parsed, _ := netip.ParseAddr(address) // no prefix contains what is not valid
		holds := func(p netip.Prefix) bool { return p.Contains(parsed) }
		return slices.ContainsFunc(services, holds) || exposed && slices.ContainsFunc(ranges(), holds)
	}
}

// Node returns a node as exported services are exposed by it, with addresses of a type, and whether it exists.
func (c *Cluster) Node(name string, addresses corev1.NodeAddressType) (node export.Node, exists bool) {
	object := informer.Get[*corev1.Node](c.Nodes.Indexer(), name)
	if object == nil {
		return node, false
	}
	node.Zone = zoneOf(object)
	for _, condition := range object.Status.Conditions {
		node.Ready = condition.Status == corev1.ConditionTrue
	}
	var texts []string
	for _, each := range object.Status.Addresses {
		node.Own = append(node.Own, each.Address)
		if each.Type == addresses {
			texts = append(texts, each.Address)
		}
	}
	if text := object.Annotations[export.AnnotationNodeAddress]; text != "" {
		texts = strings.Split(text, ",")
	}
	for _, text := range texts {
		address, err := netip.ParseAddr(strings.TrimSpace(text))
		known := slices.ContainsFunc(node.Addresses, func(a netip.Addr) bool { return a.Is4() == address.Is4() })
		if err == nil && !known {
			node.Addresses = append(node.Addresses, address)
		}
	}
	return node, true
}

func zoneOf(object any) string {
	if node, ok := object.(metav1.Object); ok {
		return node.GetLabels()[corev1.LabelTopologyZone]
	}
	return ""
}

// NodesKnown reports whether the nodes were listed.
func (c *Cluster) NodesKnown() bool {
	select {
	case <-c.Nodes.Synced():
		return true
	default:
		return false
	}
}

// Zones returns the zones of the nodes, which hints depend on. Before the nodes are known there are no hints.
func (c *Cluster) Zones() placement.Nodes {
	if !c.NodesKnown() {
		return placement.Nodes{SomeWithoutZone: true}
	}
	zones := c.Nodes.Indexer().ListIndexFuncValues(byZone)
	slices.Sort(zones)
	if len(zones) > 0 && zones[0] == "" {
		return placement.Nodes{Zones: zones[1:], SomeWithoutZone: true}
	}
	return placement.Nodes{Zones: zones}
}

// NodesWithoutZone returns the names of the nodes that hints have no effect on.
func (c *Cluster) NodesWithoutZone() []string {
	names, _ := c.Nodes.Indexer().IndexKeys(byZone, "") // only an unknown index is an error
	return names
}

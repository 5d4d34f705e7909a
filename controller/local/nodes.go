// SPDX-License-Identifier: Apache-2.0

package local

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

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

// newNodes returns the cache of the nodes. It keeps the name of a node, the label of its zone, and its addresses. Hints and
// the refusal of addresses depend on nodes, no export does, so the cache has a gate of its own: nothing else waits for it.
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
				Status:     corev1.NodeStatus{Addresses: node.Status.Addresses},
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

// Owns returns a function that reports whether a node or the API server has an address, which is in canonical form. Nodes
// that are not known, because they may not be listed, have none.
func (c *Cluster) Owns() func(address string) bool {
	var servers []string
	for _, slice := range c.KubernetesSlices(APIServer) {
		for i := range slice.Endpoints {
			servers = append(servers, slice.Endpoints[i].Addresses...)
		}
	}
	nodes := c.Nodes.Indexer()
	return func(address string) bool {
		names, err := nodes.IndexKeys(byAddress, address)
		return err == nil && len(names) > 0 || slices.Contains(servers, address)
	}
}

func zoneOf(object any) string {
	if node, ok := object.(metav1.Object); ok {
		return node.GetLabels()[corev1.LabelTopologyZone]
	}
	return ""
}

// Zones returns the zones of the nodes, which hints depend on. Before the nodes are known there are no hints.
func (c *Cluster) Zones() placement.Nodes {
	select {
	case <-c.Nodes.Synced():
	default:
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
	names, err := c.Nodes.Indexer().IndexKeys(byZone, "")
	if err != nil {
		return nil // only an unknown index is an error
	}
	return names
}

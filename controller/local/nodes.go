// SPDX-License-Identifier: Apache-2.0

package local

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
)

// byZone indexes nodes by their zone, empty for those that have none.
const byZone = "zone"

// newNodes returns the cache of the nodes. It keeps the name of a node and the label of its zone. Only hints depend on
// nodes, so the cache has a gate of its own: nothing else waits for it.
func newNodes(client metadata.Interface) *informer.Informer {
	return informer.New(&informer.FreshnessGate{}, client.Resource(corev1.SchemeGroupVersion.WithResource("nodes")), informer.Options{
		Resource: "Nodes", Example: &metav1.PartialObjectMetadata{},
		Indexers: cache.Indexers{
			byZone: func(object any) ([]string, error) { return []string{zoneOf(object)}, nil },
		},
		Transform: func(object any) (any, error) {
			node, ok := object.(*metav1.PartialObjectMetadata)
			if !ok {
				return object, nil
			}
			kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
			}}
			if zone := zoneOf(node); zone != "" {
				kept.Labels = map[string]string{corev1.LabelTopologyZone: zone}
			}
			return kept, nil
		},
	})
}

func zoneOf(object any) string {
	if node, ok := object.(metav1.Object); ok {
		return node.GetLabels()[corev1.LabelTopologyZone]
	}
	return ""
}

// Zones returns the zones of the nodes, which hints depend on. Before the nodes are known there are no hints.
func (c *Cluster) Zones() locality.Nodes {
	select {
	case <-c.Nodes.Synced():
	default:
		return locality.Nodes{SomeWithoutZone: true}
	}
	zones := c.Nodes.Indexer().ListIndexFuncValues(byZone)
	slices.Sort(zones)
	if len(zones) > 0 && zones[0] == "" {
		return locality.Nodes{Zones: zones[1:], SomeWithoutZone: true}
	}
	return locality.Nodes{Zones: zones}
}

// NodesWithoutZone returns the names of the nodes that hints have no effect on.
func (c *Cluster) NodesWithoutZone() []string {
	names, err := c.Nodes.Indexer().IndexKeys(byZone, "")
	if err != nil {
		return nil // only an unknown index is an error
	}
	return names
}

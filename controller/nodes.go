// SPDX-License-Identifier: Apache-2.0

package controller

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

// newNodes returns the cache of the nodes, of which it holds the name and the
// label of the zone alone.
func newNodes(client metadata.Interface, group *informer.Group) *informer.Informer {
	return informer.New(group, client.Resource(corev1.SchemeGroupVersion.WithResource("nodes")), informer.Options{
		Resource: "Nodes", Example: &metav1.PartialObjectMetadata{},
		Indexers: cache.Indexers{
			byZone: func(object any) ([]string, error) { return []string{zoneOf(object)}, nil },
		},
		Transform: func(object any) (any, error) {
			node, ok := object.(*metav1.PartialObjectMetadata)
			if !ok {
				return object, nil
			}
			kept := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion}}
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

// zones are what hints depend on.
func (l *local) zones() locality.Nodes {
	zones := l.nodes.Indexer().ListIndexFuncValues(byZone)
	slices.Sort(zones)
	if len(zones) > 0 && zones[0] == "" {
		return locality.Nodes{Zones: zones[1:], SomeWithoutZone: true}
	}
	return locality.Nodes{Zones: zones}
}

// nodesWithoutZone are the names of the nodes that hints have no effect on.
func (l *local) nodesWithoutZone() []string {
	names, err := l.nodes.Indexer().IndexKeys(byZone, "")
	if err != nil {
		return nil // only an unknown index is an error
	}
	return names
}

// nodeHandler looks at all services anew when the zones are others than before.
// Those at the start are seen by whoever looks first.
func (r *reconciler) nodeHandler() cache.ResourceEventHandler {
	var last locality.Nodes
	changed := func(change) {
		now := r.local.zones()
		if last.SomeWithoutZone == now.SomeWithoutZone && slices.Equal(last.Zones, now.Zones) {
			return
		}
		last = now
		r.enqueueAll()
	}
	each := onChange(changed)
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isInInitialList bool) {
			if isInInitialList {
				last = r.local.zones()
				return
			}
			each.AddFunc(object)
		},
		UpdateFunc: each.UpdateFunc,
		DeleteFunc: each.DeleteFunc,
	}
}

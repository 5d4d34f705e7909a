// SPDX-License-Identifier: Apache-2.0

package local

import (
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// copies are the copies of members' slices that a reconcile used, by the cluster that exports them.
type copies map[string][]*export.Packed

// Copies returns the copies of members' slices for a service, by the cluster that exports them: those among existing, and those
// that the last reconcile used and that were deleted since. The deletion of copies must not remove the endpoints of a member
// that cannot be read (docs/design.md, invariant 2).
func (c *Cluster) Copies(
	service types.NamespacedName, existing []*discoveryv1.EndpointSlice,
) map[string][]*discoveryv1.EndpointSlice {
	last, _ := c.used.Load(service)
	used, _ := last.(copies)
	exists := make(map[string]bool, len(existing))
	byCluster := map[string][]*discoveryv1.EndpointSlice{}
	add := func(slice *discoveryv1.EndpointSlice) {
		cluster := slice.Labels[export.LabelSourceCluster]
		byCluster[cluster] = append(byCluster[cluster], slice)
	}
	for _, slice := range existing {
		if slice.DeletionTimestamp == nil { // a finalizer may keep a deleted slice
			exists[slice.Name] = true
			add(slice)
		}
	}
	for _, of := range used {
		for _, slice := range export.OpenAll(of) {
			if !exists[slice.Name] {
				add(slice)
			}
		}
	}
	return byCluster
}

// Use records which copies this reconcile of a service used.
func (c *Cluster) Use(service types.NamespacedName, used []*discoveryv1.EndpointSlice) {
	packed := copies{}
	for _, slice := range used {
		cluster := slice.Labels[export.LabelSourceCluster]
		packed[cluster] = append(packed[cluster], export.Pack(slice))
	}
	if len(packed) > 0 {
		c.used.Store(service, packed)
	} else {
		c.used.Delete(service)
	}
}

// usedFrom returns the services whose last reconcile used copies of a cluster's slices.
func (c *Cluster) usedFrom(cluster string) (services []types.NamespacedName) {
	c.used.Range(func(service, used any) bool {
		if len(used.(copies)[cluster]) > 0 {
			services = append(services, service.(types.NamespacedName))
		}
		return true
	})
	return services
}

// Imported returns the services that are imported from a cluster, with the weight of the copies that exist, in a new
// map.
func (c *Cluster) Imported(cluster string) map[types.NamespacedName]limits.Weight {
	services := map[types.NamespacedName]limits.Weight{}
	for _, each := range c.packed(bySourceCluster, cluster) {
		slice := each.Open() // one at a time
		service := export.ServiceOf(slice)
		services[service] = services[service].Plus(limits.WeightOf(slice))
	}
	for _, service := range c.usedFrom(cluster) {
		services[service] = services[service].Plus(limits.Weight{})
	}
	return services
}

// ServicesFrom returns the services that are imported from a cluster, or published by it if it is the local cluster, in
// a new map.
func (c *Cluster) ServicesFrom(cluster string) map[types.NamespacedName]struct{} {
	services := map[types.NamespacedName]struct{}{}
	for _, slice := range c.packed(bySourceCluster, cluster) {
		services[export.ServiceOf(slice.GetObjectMeta())] = struct{}{}
	}
	for _, service := range c.usedFrom(cluster) {
		services[service] = struct{}{}
	}
	return services
}

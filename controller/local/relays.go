// SPDX-License-Identifier: Apache-2.0

package local

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// Relays returns the Secrets of relays.
func (c *Cluster) Relays() []*corev1.Secret {
	return informer.List[*corev1.Secret](c.RelaySecrets.Indexer())
}

// SigningKey returns the Secret with the signing key, nil without one.
func (c *Cluster) SigningKey() *corev1.Secret {
	for _, secret := range informer.List[*corev1.Secret](c.KeySecrets.Indexer()) {
		return secret
	}
	return nil
}

// Published returns the names of the EndpointSlices that this controller keeps of a cluster: those that it publishes if
// that is the local cluster.
func (c *Cluster) Published(cluster string) (names []types.NamespacedName) {
	for _, slice := range c.packed().Unopened(bySourceCluster, cluster) {
		metadata := slice.OpenMetadata()
		names = append(names, types.NamespacedName{Namespace: metadata.Namespace, Name: metadata.Name})
	}
	return names
}

// PublishedSlice returns one of the Published, nil if there is none of that name.
func (c *Cluster) PublishedSlice(cluster string, name types.NamespacedName) *discoveryv1.EndpointSlice {
	slice := c.EndpointSlice(name.Namespace, name.Name)
	if slice == nil || slice.Labels[export.LabelService] == "" || !c.set.Manages(slice) ||
		slice.Labels[export.LabelSourceCluster] != cluster {
		return nil
	}
	return slice
}

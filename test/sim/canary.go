// SPDX-License-Identifier: Apache-2.0

package sim

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// Canary has a replica answer probes at an address of the network, and probe those of others.
func (c *Cluster) Canary(address string) func(*controller.Options) {
	return func(options *controller.Options) {
		listener, err := c.network.Listen(address)
		c.Must(err)
		options.Canary, options.DialCanary = listener, options.DialMember
	}
}

// OfferCanaries sets the canaries of the cluster, as the EndpointSlice controller does, each on a node of its own.
func (c *Cluster) OfferCanaries(canaries ...string) {
	c.t.Helper()
	slice := sliceOf(member.DefaultNamespace, canary.Service, canary.Port, 8081)
	for _, each := range canaries {
		node := "node-of-" + each
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{each}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, NodeName: &node,
		})
	}
	c.Put(slice)
}

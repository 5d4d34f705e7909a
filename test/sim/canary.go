// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"

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

// OfferCanaries sets the canaries of the cluster, as the EndpointSlice controller does: "10.65.9.1=a" is one in a zone.
func (c *Cluster) OfferCanaries(canaries ...string) {
	c.t.Helper()
	slice := sliceOf(member.DefaultNamespace, canary.Service, canary.Port, 8081)
	for _, each := range canaries {
		address, zone, _ := strings.Cut(each, "=")
		node := "node-of-" + address
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, Zone: &zone,
			NodeName: &node,
		})
	}
	c.Put(slice)
}

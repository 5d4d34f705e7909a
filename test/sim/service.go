// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"

	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// Must ends the scenario if a change of a cluster fails: its administrator has
// all rights, and its API server is not asked over the network.
func (c *Cluster) Must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%s: %v", c.name, err)
	}
}

// OfferCanaries sets the canaries of the cluster, as the EndpointSlice controller does.
func (c *Cluster) OfferCanaries(canaries ...string) {
	c.t.Helper()
	var endpoints []string
	for _, each := range canaries {
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [%q], conditions: {ready: true, serving: true}}", each))
	}
	c.Put(fmt.Sprintf(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4,
  metadata: {namespace: %s, name: canaries, labels: {%s: %s}}, ports: [{name: %s, port: 8081, protocol: TCP}], endpoints: [%s]}`,
		member.DefaultNamespace, export.LabelKubernetesService, canary.Service, canary.Port, strings.Join(endpoints, ", ")))
}

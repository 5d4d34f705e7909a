// SPDX-License-Identifier: Apache-2.0

package truth

import "net/netip"

// A Node is one of a cluster.
type Node struct {
	Address netip.Addr
	Ready   bool
}

// In returns the exports as clusters of a network see them.
func In(network string, exports []Export) (seen []Export) {
	for _, export := range exports {
		visible := true
		if export.Network != network {
			export.Endpoints, visible = Exposed(export.Headless, export.Endpoints, export.Nodes)
		}
		if visible {
			seen = append(seen, export)
		}
	}
	return seen
}

// Exposed returns the endpoints that clusters of other networks have of a service that is exposed by node ports, and whether
// they have it at all: each node that exists, with its address and the best conditions of its pods; none of them holds
// while the node is not ready. A headless service is exposed by the pods with the address of their node, with their own
// conditions, unless it has only others.
func Exposed(headless bool, pods []Endpoint, nodes map[string]Node) (endpoints []Endpoint, exposed bool) {
	if headless {
		others := false
		for _, pod := range pods {
			node, exists := nodes[pod.Node]
			switch {
			case exists && node.Address != pod.Address:
				others = true
			case exists:
				endpoints = append(endpoints, pod)
			}
		}
		return endpoints, len(endpoints) > 0 || !others
	}
	at := map[string]int{} // by the name of the node
	for _, pod := range pods {
		node, exists := nodes[pod.Node]
		if !exists {
			continue
		}
		is := Endpoint{Address: node.Address}
		if node.Ready {
			is.Ready, is.Serving, is.Terminating = pod.Ready, pod.Serving, pod.Terminating
		}
		i, known := at[pod.Node]
		switch {
		case !known:
			at[pod.Node], endpoints = len(endpoints), append(endpoints, is)
		case !endpoints[i].Ready && (is.Ready || !endpoints[i].Serving):
			endpoints[i] = is
		}
	}
	return endpoints, true
}

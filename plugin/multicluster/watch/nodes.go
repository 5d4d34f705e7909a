// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/index"
)

// nodeOf is what places depend on of a node: its clients are its pods, and what runs in its own network, such as a
// cache of its names.
func nodeOf(object *corev1.Node) *index.Node {
	node := &index.Node{Zone: object.Labels[corev1.LabelTopologyZone], Region: object.Labels[corev1.LabelTopologyRegion]}
	ranges := object.Spec.PodCIDRs
	if len(ranges) == 0 && object.Spec.PodCIDR != "" {
		ranges = []string{object.Spec.PodCIDR}
	}
	for _, text := range ranges {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			node.Prefixes = append(node.Prefixes, prefix.Masked())
		}
	}
	for _, address := range object.Status.Addresses {
		if address.Type != corev1.NodeInternalIP {
			continue
		}
		if addr, err := netip.ParseAddr(address.Address); err == nil {
			node.Prefixes = append(node.Prefixes, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
		}
	}
	return node
}

// setNode puts a node in the place of its last state; nil removes it. The lock is held.
func (in *inputs) setNode(name string, node *index.Node) {
	before := in.nodes[name]
	if before != nil && node != nil && before.Zone == node.Zone && before.Region == node.Region &&
		slices.Equal(before.Prefixes, node.Prefixes) {
		return // most changes of a node are signs of its life
	}
	switch {
	case node == nil && before == nil:
		return
	case node == nil:
		in.observer.Objects(Nodes, -1)
		delete(in.nodes, name)
	default:
		if before == nil {
			in.observer.Objects(Nodes, +1)
		}
		in.nodes[name] = node
	}
	in.moved = true
	in.signal()
}

// takeNodes returns all nodes where one changed since the last call.
func (in *inputs) takeNodes() (nodes []index.Node, moved bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.moved {
		return nil, false
	}
	in.moved = false
	for _, node := range in.nodes {
		nodes = append(nodes, *node)
	}
	return nodes, true
}

// Topology is where clients are, as far as it is known now.
func (s *Source) Topology() *index.Topology { return s.topology.Load() }

// place takes in what changed of the nodes.
func (s *Source) place() {
	if nodes, moved := s.inputs.takeNodes(); moved {
		s.topology.Store(index.NewTopology(nodes))
	}
}

// SPDX-License-Identifier: Apache-2.0

package watch

import "github.com/clusterset-dns/clusterset-dns/plugin/multicluster/topology"

// setNode puts a node in the place of its last state; nil removes it. The lock is held.
func (in *inputs) setNode(name string, node *topology.Node) {
	before := in.nodes[name]
	if before != nil && node != nil && before.Equal(node) {
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

// takeNodes returns all nodes if one changed since the last call.
func (in *inputs) takeNodes() (nodes []topology.Node, moved bool) {
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

// Topology is where clients are, as far as known.
func (s *Source) Topology() *topology.Topology { return s.topology.Load() }

// place takes in what changed of the nodes.
func (s *Source) place() {
	if nodes, moved := s.inputs.takeNodes(); moved {
		s.topology.Store(topology.New(nodes))
	}
}

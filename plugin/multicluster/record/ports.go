// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// PortSet is the ports of SRV targets. It is immutable and shared by the blocks that have these ports. A nil PortSet is
// empty.
type PortSet struct {
	ports   []object.Port // sorted, each once
	numbers []object.Port // one for each number
}

// Named returns the ports that are asked for: those of the name, or one of each number if it is empty. The result is
// shared and must not be changed.
func (s *PortSet) Named(wanted object.PortName) []object.Port {
	switch {
	case s == nil:
		return nil
	case wanted.Name == "":
		return s.numbers
	}
	from, to := wanted.Range(s.ports)
	return s.ports[from:to]
}

// has reports whether there is a port with the name or, if it is empty, a named one with the protocol.
func (s *PortSet) has(wanted object.PortName) bool {
	if wanted.Name == "" {
		return s != nil && object.HasNamed(s.ports, wanted.Protocol)
	}
	return len(s.Named(wanted)) > 0
}

// each yields the owner and the port of the SRV records that a target with the ports has in the service with that name:
// one for each number, and those of the named ports.
func (s *PortSet) each(service string, yield func(owner string, port uint16)) {
	if s == nil {
		return
	}
	for _, port := range s.numbers {
		yield(service, port.Number)
	}
	for _, port := range s.ports {
		if port.Name != "" {
			yield(object.PortName{Name: port.Name, Protocol: port.Protocol}.Owner(service), port.Number)
		}
	}
}

// portSets are the port sets of one service by their content. Equal ports have one set, so that sets are compared as
// pointers.
type portSets map[string]*PortSet

// union returns the set of the ports of both.
func (p portSets) union(a, b *PortSet) *PortSet {
	switch {
	case a == b || b == nil:
		return a
	case a == nil:
		return b
	}
	return p.set(object.SortPorts(slices.Concat(a.ports, b.ports)))
}

// set returns the one set of these ports, which are sorted, each once.
func (p portSets) set(ports []object.Port) *PortSet {
	if len(ports) == 0 {
		return nil
	}
	var key []byte
	for _, port := range ports {
		key = append(append(key, port.Name...), '.', byte(port.Protocol)) // no name has a dot
		key = binary.NativeEndian.AppendUint16(key, port.Number)
	}
	if known := p[string(key)]; known != nil {
		return known
	}
	p[string(key)] = newPortSet(ports)
	return p[string(key)]
}

// newPortSet makes the set of these ports, which are sorted, each once.
func newPortSet(ports []object.Port) *PortSet {
	if len(ports) == 0 {
		return nil
	}
	byNumber := func(a, b object.Port) int { return cmp.Compare(a.Number, b.Number) }
	numbers := slices.SortedStableFunc(slices.Values(ports), byNumber)
	return &PortSet{ports, slices.CompactFunc(numbers, func(a, b object.Port) bool { return a.Number == b.Number })}
}

// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/binary"
	"slices"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// PortSet is the ports of SRV targets with the numbers in their records, which no query computes again. It is immutable
// and shared by the blocks that have these ports. A nil PortSet is empty.
type PortSet struct {
	ports    []object.Port // sorted, each once
	numbers  []uint16      // of the ports, in their order
	distinct []uint16      // the same, sorted, each once
	id       uint32        // unique in a portSets
}

// Numbers returns the distinct numbers of the ports that are asked for. The result is shared and must not be changed.
func (s *PortSet) Numbers(wanted object.PortName) []uint16 {
	switch {
	case s == nil:
		return nil
	case wanted.Name == "":
		return s.distinct
	}
	from, to := wanted.Range(s.ports)
	return s.numbers[from:to:to]
}

// Ports returns the ports, sorted, each once. The result is shared and must not be changed.
func (s *PortSet) Ports() []object.Port {
	if s == nil {
		return nil
	}
	return s.ports
}

// portSets makes the port sets of one service. Equal ports have one set, so that sets are compared as pointers.
type portSets struct {
	config   *Config
	imported *object.Import
	// sliced are the sets of the lists of slices, by the first port: sibling slices share their lists.
	sliced map[*object.Port]slicePorts
	// sets are all sets by their content, unions the sets of hosts in several slices by the ids of the slices' sets.
	sets, unions map[string]*PortSet
	ids          uint32 // the next id
	key          []byte
}

func newPortSets(config *Config, imported *object.Import) *portSets {
	return &portSets{
		config: config, imported: imported,
		sliced: make(map[*object.Port]slicePorts), sets: make(map[string]*PortSet), unions: make(map[string]*PortSet),
	}
}

// slicePorts are the ports of a slice that have records. TooLong reports that others have names that are too long.
type slicePorts struct {
	set     *PortSet
	tooLong bool
}

// slice returns the set of a slice's ports that the import declares and whose names fit.
func (p *portSets) slice(ports []object.Port) slicePorts {
	if len(ports) == 0 {
		return slicePorts{}
	}
	if known, ok := p.sliced[&ports[0]]; ok {
		return known
	}
	var made slicePorts
	first := &ports[0]
	leave := func(port object.Port) bool {
		if !p.imported.Declares(object.PortName{Name: port.Name, Protocol: port.Protocol}) {
			return true
		}
		tooLong := p.config.tooLong(p.imported, port)
		made.tooLong = made.tooLong || tooLong
		return tooLong
	}
	if slices.ContainsFunc(ports, leave) {
		ports = slices.DeleteFunc(slices.Clone(ports), leave)
	}
	made.set = p.intern(ports)
	p.sliced[first] = made
	return made
}

// union returns the set of the ports of all sets. It sorts the argument.
func (p *portSets) union(sets []*PortSet) *PortSet {
	if len(sets) > 1 {
		slices.SortFunc(sets, func(a, b *PortSet) int { return int(a.id) - int(b.id) })
		sets = slices.Compact(sets)
	}
	switch len(sets) {
	case 0:
		return nil
	case 1:
		return sets[0]
	}
	p.key = p.key[:0]
	for _, set := range sets {
		p.key = binary.NativeEndian.AppendUint32(p.key, set.id)
	}
	if known, ok := p.unions[string(p.key)]; ok {
		return known
	}
	key := string(p.key)
	var all []object.Port
	for _, set := range sets {
		all = append(all, set.ports...)
	}
	p.unions[key] = p.intern(object.SortPorts(all))
	return p.unions[key]
}

// setKey sets the key to that of ports.
func (p *portSets) setKey(ports []object.Port) {
	p.key = p.key[:0]
	for _, port := range ports {
		p.key = append(append(p.key, port.Name...), byte('.'), byte(port.Protocol)) // no name has a dot
		p.key = binary.NativeEndian.AppendUint16(p.key, port.Number)
	}
}

// intern returns the one set of these ports, which are sorted, each once.
func (p *portSets) intern(ports []object.Port) *PortSet {
	if len(ports) == 0 {
		return nil
	}
	p.setKey(ports)
	if known, ok := p.sets[string(p.key)]; ok {
		return known
	}
	set := &PortSet{ports: ports, numbers: make([]uint16, len(ports)), id: p.ids}
	p.ids++
	for i, port := range ports {
		set.numbers[i] = port.Number
	}
	if set.distinct = slices.Compact(slices.Sorted(slices.Values(set.numbers))); slices.Equal(set.distinct,
		set.numbers) {
		set.distinct = set.numbers
	}
	p.sets[string(p.key)] = set
	return set
}

// SPDX-License-Identifier: Apache-2.0

package index

import (
	"encoding/binary"
	"slices"
)

// portSet are the ports of SRV targets, and the numbers in their records, which no query computes again. It is immutable
// and shared by the runs that have these ports. A nil set has none.
type portSet struct {
	ports    []Port   // sorted, each once
	numbers  []uint16 // of the ports, in their order
	distinct []uint16 // the same, sorted, each once
	id       uint32   // tells the sets of one portSets apart
}

// of returns the distinct numbers of the ports that are asked for. The result is shared and must not be changed.
func (s *portSet) of(wanted portName) []uint16 {
	switch {
	case s == nil:
		return nil
	case wanted.name == "":
		return s.distinct
	}
	from, to := portRange(s.ports, wanted)
	return s.numbers[from:to:to]
}

// list are the ports.
func (s *portSet) list() []Port {
	if s == nil {
		return nil
	}
	return s.ports
}

// portSets makes the port sets of one service. Equal ports have one set, so that sets are compared as pointers.
type portSets struct {
	config   *Config
	imported *Import
	// sliced are the sets of the lists of slices, by the first port: sibling slices share their lists.
	sliced map[*Port]slicePorts
	// sets are all sets by what is in them, unions the sets of hosts in several slices by the ids of the slices' sets.
	sets, unions map[string]*portSet
	key          []byte
}

// slicePorts are the ports of a slice that have records. TooLong tells that others have names that are too long.
type slicePorts struct {
	set     *portSet
	tooLong bool
}

// slice returns the set of a slice's ports that the import declares and whose names fit.
func (p *portSets) slice(ports []Port) slicePorts {
	if len(ports) == 0 {
		return slicePorts{}
	}
	if known, ok := p.sliced[&ports[0]]; ok {
		return known
	}
	var made slicePorts
	room := maxName - len("_._.") - len(p.imported.Key) - p.config.maxSuffix()
	first := &ports[0]
	leave := func(port Port) bool {
		if !p.imported.declares(port) {
			return true
		}
		tooLong := port.Name != "" && len(port.Name)+len(port.Protocol.String()) > room
		made.tooLong = made.tooLong || tooLong
		return tooLong
	}
	if slices.ContainsFunc(ports, leave) {
		ports = slices.DeleteFunc(slices.Clone(ports), leave)
	}
	made.set = p.intern(ports)
	if p.sliced == nil {
		p.sliced = make(map[*Port]slicePorts)
	}
	p.sliced[first] = made
	return made
}

// union returns the set of the ports of all sets. It sorts the argument.
func (p *portSets) union(sets []*portSet) *portSet {
	if len(sets) > 1 {
		slices.SortFunc(sets, func(a, b *portSet) int { return int(a.id) - int(b.id) })
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
	var all []Port
	for _, set := range sets {
		all = append(all, set.ports...)
	}
	if p.unions == nil {
		p.unions = make(map[string]*portSet)
	}
	p.unions[key] = p.intern(normalPorts(all))
	return p.unions[key]
}

// intern returns the one set of these ports, which are sorted, each once.
func (p *portSets) intern(ports []Port) *portSet {
	if len(ports) == 0 {
		return nil
	}
	p.key = p.key[:0]
	for _, port := range ports {
		p.key = append(append(p.key, port.Name...), byte('.'), byte(port.Protocol)) // no name has a dot
		p.key = binary.NativeEndian.AppendUint16(p.key, port.Number)
	}
	if known, ok := p.sets[string(p.key)]; ok {
		return known
	}
	set := &portSet{ports: ports, numbers: make([]uint16, len(ports)), id: uint32(len(p.sets))}
	for i, port := range ports {
		set.numbers[i] = port.Number
	}
	if set.distinct = slices.Compact(slices.Sorted(slices.Values(set.numbers))); slices.Equal(set.distinct, set.numbers) {
		set.distinct = set.numbers
	}
	if p.sets == nil {
		p.sets = make(map[string]*portSet)
	}
	p.sets[string(p.key)] = set
	return set
}

// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
)

// Protocol is the transport of a port.
type Protocol uint8

// The protocols of Kubernetes ports.
const (
	tcp Protocol = iota
	udp
	sctp
)

var protocolNames = [...]string{tcp: "tcp", udp: "udp", sctp: "sctp"}

// String is the protocol's name in DNS, without its underscore.
func (p Protocol) String() string { return protocolNames[p] }

// Port is a port of an import or a slice. An unnamed port has no record of its own (KEP-1645, specification.md).
type Port struct {
	// Name is a DNS label in lower case, or empty.
	Name     string
	Number   uint16
	Protocol Protocol
}

func comparePorts(a, b Port) int {
	return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), strings.Compare(a.Name, b.Name), cmp.Compare(a.Number, b.Number))
}

// sortPorts sorts ports by protocol, name and number, and drops repeated ones and spare capacity.
func sortPorts(ports []Port) []Port {
	if len(ports) == 0 {
		return nil
	}
	slices.SortFunc(ports, comparePorts)
	return slices.Clip(slices.Compact(ports))
}

// readPort reads the parts of a port. ok is false if no record can hold them.
func readPort(name string, protocol corev1.Protocol, number int32) (port Port, ok bool) {
	p := slices.Index([]corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP},
		cmp.Or(protocol, corev1.ProtocolTCP))
	if p < 0 || number < 1 || number > math.MaxUint16 {
		return Port{}, false
	}
	name = strings.ToLower(name)
	if name != "" && (!isLabel(name) || len(name) >= maxLabel) { // the underscore takes one octet
		return Port{}, false
	}
	return Port{Name: unique.Make(name).Value(), Number: uint16(number), Protocol: Protocol(p)}, true
}

// owner is the name of the SRV records of the port in the service with that name.
func (p Port) owner(service string) string {
	return "_" + p.Name + "._" + p.Protocol.String() + "." + service
}

// among returns the range of the sorted ports that have its name and its protocol, whatever their numbers are.
func (p Port) among(ports []Port) (from, to int) {
	p.Number = 0
	from, _ = slices.BinarySearchFunc(ports, p, comparePorts)
	p.Number = math.MaxUint16
	to, last := slices.BinarySearchFunc(ports[from:], p, comparePorts)
	if last {
		to++
	}
	return from, from + to
}

// hasNamed reports whether one of the sorted ports has the protocol and a name.
func hasNamed(ports []Port, protocol Protocol) bool {
	end, _ := slices.BinarySearchFunc(ports, Port{Protocol: protocol + 1}, comparePorts)
	return end > 0 && ports[end-1].Protocol == protocol && ports[end-1].Name != ""
}

// PortSet is the ports of SRV targets. It is immutable and shared by the blocks that have these ports. A nil PortSet is
// empty.
type PortSet struct {
	ports   []Port // sorted, each once
	numbers []Port // one for each number
}

// Named returns the ports that are asked for: those of the name and the protocol, or one of each number if there is no
// name. The result is shared and must not be changed.
func (s *PortSet) Named(wanted Port) []Port {
	switch {
	case s == nil:
		return nil
	case wanted.Name == "":
		return s.numbers
	}
	from, to := wanted.among(s.ports)
	return s.ports[from:to]
}

// has reports whether there is a port with the name or, if it is empty, a named one with the protocol.
func (s *PortSet) has(wanted Port) bool {
	if wanted.Name == "" {
		return s != nil && hasNamed(s.ports, wanted.Protocol)
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
			yield(port.owner(service), port.Number)
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
	return p.set(sortPorts(slices.Concat(a.ports, b.ports)))
}

// set returns the one set of these ports, which are sorted, each once.
func (p portSets) set(ports []Port) *PortSet {
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
func newPortSet(ports []Port) *PortSet {
	if len(ports) == 0 {
		return nil
	}
	byNumber := func(a, b Port) int { return cmp.Compare(a.Number, b.Number) }
	numbers := slices.SortedStableFunc(slices.Values(ports), byNumber)
	return &PortSet{ports, slices.CompactFunc(numbers, func(a, b Port) bool { return a.Number == b.Number })}
}

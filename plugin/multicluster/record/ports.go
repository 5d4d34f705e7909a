// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
)

// Port is a port of an import or a slice. An unnamed port has no record of its own (KEP-1645, specification.md).
type Port struct {
	// Label is "_<name>._<protocol>", or "<protocol>" if the port has no name, in lower case.
	Label  string
	Number uint16
}

func (p Port) named() bool { return strings.HasPrefix(p.Label, "_") }

func comparePorts(a, b Port) int {
	return cmp.Or(strings.Compare(a.Label, b.Label), cmp.Compare(a.Number, b.Number))
}

// distinct sorts values, and drops duplicates and spare capacity.
func distinct[T comparable](values []T, compare func(a, b T) int) []T {
	slices.SortFunc(values, compare)
	return slices.Clip(slices.Compact(values))
}

// appendPort appends the port with these parts, or counts a skip if no record can hold it.
func appendPort(ports []Port, skips *Skips, name string, protocol corev1.Protocol, number int32) []Port {
	name, protocol = strings.ToLower(name), cmp.Or(protocol, corev1.ProtocolTCP)
	known := slices.Contains([]corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}, protocol)
	fits := name == "" || isLabel(name) && len(name) < maxLabel // the underscore takes one octet
	if !known || !fits || number < 1 || number > math.MaxUint16 {
		skips.Add(InvalidPort, 1)
		return ports
	}
	label := strings.ToLower(string(protocol))
	if name != "" {
		label = "_" + name + "._" + label
	}
	return append(ports, Port{Label: unique.Make(label).Value(), Number: uint16(number)})
}

// labeled returns the ports with the label from sorted ports; their numbers may differ.
func labeled(ports []Port, label string) []Port {
	from, _ := slices.BinarySearchFunc(ports, Port{Label: label}, comparePorts)
	ports = ports[from:]
	to, last := slices.BinarySearchFunc(ports, Port{label, math.MaxUint16}, comparePorts)
	if last {
		to++
	}
	return ports[:to]
}

// owner returns the owner name of the port's SRV records in the service with this name. The port is from a PortSet.
func (p Port) owner(service string) string {
	if p.Label == "" {
		return service
	}
	return p.Label + "." + service
}

// PortSet has the distinct ports of SRV targets, sorted: each number without a label, and the named ports. It is
// immutable and shared by the blocks that have these ports.
type PortSet struct {
	ports     []Port
	protocols []string // the distinct "_<protocol>" of the named ports
}

func newPortSet(ports []Port) *PortSet {
	s := &PortSet{ports: ports}
	for _, port := range ports {
		if _, protocol, named := strings.Cut(port.Label, "."); named && !slices.Contains(s.protocols, protocol) {
			s.protocols = append(s.protocols, protocol)
		}
	}
	return s
}

// has reports whether a port has the label "_<name>._<protocol>", or the protocol "_<protocol>". It looks at few ports,
// because a query calls it for each block.
func (s *PortSet) has(label string) bool {
	return slices.Contains(s.protocols, label) || len(labeled(s.ports, label)) > 0
}

// portSets are the port sets of one service by their content. Equal ports share one set, so sets are compared as
// pointers.
type portSets map[string]*PortSet

// union returns the set of the ports of both sets. a may be nil.
func (p portSets) union(a, b *PortSet) *PortSet {
	if a == nil || a == b {
		return b
	}
	return p.set(distinct(slices.Concat(a.ports, b.ports), comparePorts))
}

// set returns the shared set of these ports.
func (p portSets) set(ports []Port) *PortSet {
	key := fmt.Sprint(ports) // no label has a space
	if p[key] == nil {
		p[key] = newPortSet(ports)
	}
	return p[key]
}

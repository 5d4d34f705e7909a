// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Protocol is the transport of a port.
type Protocol uint8

// The protocols of Kubernetes ports.
const (
	ProtocolTCP Protocol = iota
	ProtocolUDP
	ProtocolSCTP
)

var protocolNames = [...]string{ProtocolTCP: "tcp", ProtocolUDP: "udp", ProtocolSCTP: "sctp"}

// String is the protocol's name in DNS, without its underscore.
func (p Protocol) String() string { return protocolNames[p] }

// protocolOf reads a protocol of the Kubernetes API, where none means TCP.
func protocolOf(protocol corev1.Protocol) (Protocol, bool) {
	switch protocol {
	case "", corev1.ProtocolTCP:
		return ProtocolTCP, true
	case corev1.ProtocolUDP:
		return ProtocolUDP, true
	case corev1.ProtocolSCTP:
		return ProtocolSCTP, true
	default:
		return 0, false
	}
}

// Port is a port of an import or a slice. An unnamed port has no record of its own (KEP-1645, specification.md).
type Port struct {
	// Name is a DNS label in lower case, or empty.
	Name     string
	Number   uint16
	Protocol Protocol
}

// comparePorts orders ports by protocol, name and number.
func comparePorts(a, b Port) int {
	return cmp.Or(
		cmp.Compare(a.Protocol, b.Protocol),
		strings.Compare(a.Name, b.Name),
		cmp.Compare(a.Number, b.Number),
	)
}

// normalPorts sorts ports, drops repeated ones and the capacity that is not needed.
func normalPorts(ports []Port) []Port {
	if len(ports) == 0 {
		return nil
	}
	slices.SortFunc(ports, comparePorts)
	return slices.Clip(slices.Compact(ports))
}

// portOf reads the parts of a port; ok is false where DNS cannot hold them.
func portOf(name string, protocol corev1.Protocol, number int32) (port Port, ok bool) {
	p, ok := protocolOf(protocol)
	if !ok || number < 1 || number > 65535 {
		return Port{}, false
	}
	name = strings.ToLower(name)
	if name != "" && (!isLabel(name) || len(name) >= maxLabel) { // the underscore takes one octet
		return Port{}, false
	}
	return Port{Name: strings.Clone(name), Number: uint16(number), Protocol: p}, true
}

// portName is what the first labels of an SRV name ask for. Without a name it asks for all ports.
type portName struct {
	name     string // in lower case
	protocol Protocol
}

// portNameOf reads the labels, in any case and without their underscores; ok is false if no port can have them.
func portNameOf(name, protocol string) (wanted portName, ok bool) {
	if name == "" && protocol == "" {
		return portName{}, true
	}
	for p, text := range protocolNames {
		if equalFold(text, protocol) {
			return portName{strings.ToLower(name), Protocol(p)}, true
		}
	}
	return portName{}, false
}

// portRange returns the range of the sorted ports that have the name and the protocol.
func portRange(ports []Port, wanted portName) (from, to int) {
	from, _ = slices.BinarySearchFunc(ports, Port{Name: wanted.name, Protocol: wanted.protocol}, comparePorts)
	to, last := slices.BinarySearchFunc(ports[from:], Port{wanted.name, math.MaxUint16, wanted.protocol}, comparePorts)
	if last {
		to++
	}
	return from, from + to
}

// hasNamed tells whether one of the sorted ports has the protocol and a name.
func hasNamed(ports []Port, protocol Protocol) bool {
	end, _ := slices.BinarySearchFunc(ports, Port{Protocol: protocol + 1}, comparePorts)
	return end > 0 && ports[end-1].Protocol == protocol && ports[end-1].Name != ""
}

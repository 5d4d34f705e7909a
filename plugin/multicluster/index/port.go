// SPDX-License-Identifier: Apache-2.0

package index

import (
	"cmp"
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

// isNamed tells whether the port has a record of its own, with these labels in any case.
func (p Port) isNamed(name, protocol string) bool {
	return p.Name != "" && equalFold(p.Name, name) && equalFold(p.Protocol.String(), protocol)
}

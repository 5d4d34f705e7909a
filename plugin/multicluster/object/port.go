// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
)

// Protocol is the transport of a port.
type Protocol uint8

// The protocols of Kubernetes ports.
const (
	TCP Protocol = iota
	UDP
	SCTP
)

var protocolNames = [...]string{TCP: "tcp", UDP: "udp", SCTP: "sctp"}

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

// SortPorts sorts ports by protocol, name and number, and drops repeated ones and spare capacity.
func SortPorts(ports []Port) []Port {
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
	if name != "" && (!isLabel(name) || len(name) >= MaxLabel) { // the underscore takes one octet
		return Port{}, false
	}
	return Port{Name: unique.Make(name).Value(), Number: uint16(number), Protocol: Protocol(p)}, true
}

// PortName is what the first labels of an SRV name ask for. Without a name it asks for all ports.
type PortName struct {
	Name     string // in lower case
	Protocol Protocol
}

// Owner is the name of the SRV records of the port of the service with that name.
func (n PortName) Owner(service string) string {
	return "_" + n.Name + "._" + n.Protocol.String() + "." + service
}

// Range returns the range of the sorted ports that have the name and the protocol.
func (n PortName) Range(ports []Port) (from, to int) {
	from, _ = slices.BinarySearchFunc(ports, Port{Name: n.Name, Protocol: n.Protocol}, comparePorts)
	to, last := slices.BinarySearchFunc(ports[from:], Port{n.Name, math.MaxUint16, n.Protocol}, comparePorts)
	if last {
		to++
	}
	return from, from + to
}

// HasNamed reports whether one of the sorted ports has the protocol and a name.
func HasNamed(ports []Port, protocol Protocol) bool {
	end, _ := slices.BinarySearchFunc(ports, Port{Protocol: protocol + 1}, comparePorts)
	return end > 0 && ports[end-1].Protocol == protocol && ports[end-1].Name != ""
}

// MaxLabel is the number of octets of a DNS label (RFC 1035, section 2.3.4).
const MaxLabel = 63

// isLabel reports whether s is an RFC 1123 label in lower case.
func isLabel(s string) bool {
	if s == "" || len(s) > MaxLabel || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// IsClusterID reports whether s, in lower case, is a cluster id: one label, or two joined by a dot, of at most 63
// octets (KEP-2149).
func IsClusterID(s string) bool {
	first, second, two := strings.Cut(s, ".")
	return len(s) <= MaxLabel && isLabel(first) && (!two || isLabel(second))
}

// IsServiceAddress reports whether a service or an endpoint can have the address.
func IsServiceAddress(addr netip.Addr) bool {
	return addr.IsGlobalUnicast() && !addr.Is4In6() && addr.Zone() == ""
}

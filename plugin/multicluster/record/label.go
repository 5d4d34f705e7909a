// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// maxLabel is the number of octets of a DNS label (RFC 1035, section 2.3.4).
const maxLabel = 63

// isLabel reports whether s is an RFC 1123 label in lower case.
func isLabel(s string) bool { return len(validation.IsDNS1123Label(s)) == 0 }

// IsClusterID reports whether s, in lower case, is a cluster id: one label, or two joined by a dot, of at most 63
// octets (KEP-2149).
func IsClusterID(s string) bool {
	first, second, two := strings.Cut(s, ".")
	return len(s) <= maxLabel && isLabel(first) && (!two || isLabel(second))
}

// isServiceAddress reports whether a service or an endpoint can have the address. It is false for the zero Addr.
func isServiceAddress(addr netip.Addr) bool {
	return addr.IsGlobalUnicast() && !addr.Is4In6() && addr.Zone() == ""
}

// appendHostLabel appends the host label of an address: its text with - in place of . and :, padded with a 0 if it
// would begin or end with a -.
func appendHostLabel(dst []byte, addr netip.Addr) []byte {
	start := len(dst)
	dst = addr.AppendTo(dst)
	if dst[start] == ':' {
		dst = addr.AppendTo(append(dst[:start], '0'))
	}
	for i, c := range dst[start:] {
		if c == '.' || c == ':' {
			dst[start+i] = '-'
		}
	}
	if dst[len(dst)-1] == '-' {
		dst = append(dst, '0')
	}
	return dst
}

// parseHostLabel returns the address whose host label this is, or the zero Addr. Other texts of the same address, such
// as uncompressed IPv6, are not labels.
func parseHostLabel(label string) netip.Addr {
	other := func(c rune) bool { return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'f') }
	if strings.Count(label, "-") < 2 || strings.ContainsFunc(label, other) {
		return netip.Addr{} // most hostnames are not addresses; avoid the allocation of an error
	}
	for _, separator := range []string{".", ":"} {
		addr, _ := netip.ParseAddr(strings.ReplaceAll(label, "-", separator))
		var text [maxLabel]byte
		if isServiceAddress(addr) && string(appendHostLabel(text[:0], addr)) == label {
			return addr
		}
	}
	return netip.Addr{}
}

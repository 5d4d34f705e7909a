// SPDX-License-Identifier: Apache-2.0

package index

import (
	"net/netip"
	"strings"
)

const (
	maxLabel = 63  // octets of a DNS label (RFC 1035, section 2.3.4)
	maxName  = 253 // octets of a name without its last dot (RFC 1035, section 2.3.4)
)

// isLabel tells whether s is an RFC 1123 label in lower case.
func isLabel(s string) bool {
	if s == "" || len(s) > maxLabel || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// IsClusterID tells whether s, in lower case, is a cluster id: one label, or two joined by a dot, of 63 octets at most
// (KEP-2149).
func IsClusterID(s string) bool { return isClusterID(s) }

// isClusterID tells whether s is a cluster id: one label, or two joined by a dot, of 63 octets at most (KEP-2149).
func isClusterID(s string) bool {
	if len(s) > maxLabel {
		return false
	}
	first, second, two := strings.Cut(s, ".")
	return isLabel(first) && (!two || isLabel(second))
}

// isServiceAddress tells whether a service or an endpoint can have the address.
func isServiceAddress(addr netip.Addr) bool {
	return addr.IsGlobalUnicast() && !addr.Is4In6() && addr.Zone() == ""
}

// appendHostLabel appends the label of an address: its text with - in place of . and :, and with a 0 where it would
// begin or end with a -.
func appendHostLabel(dst []byte, addr netip.Addr) []byte {
	start := len(dst)
	if addr.Is6() {
		var text [len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")]byte
		if addr.AppendTo(text[:0])[0] == ':' {
			dst = append(dst, '0')
		}
	}
	dst = addr.AppendTo(dst)
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

// parseHostLabel returns the address whose label this is, or the zero one.
func parseHostLabel(label string) netip.Addr {
	var buffer [maxLabel]byte
	if len(label) == 0 || len(label) > len(buffer) {
		return netip.Addr{}
	}
	if addr, ok := parseHostLabel4(label); ok {
		return addr
	}
	text := buffer[:copy(buffer[:], label)]
	colons := 0
	for i, c := range text {
		switch {
		case c == '-':
			text[i] = ':'
			colons++
		case (c < '0' || c > '9') && (c < 'a' || c > 'f'):
			return netip.Addr{}
		}
	}
	if colons < 2 { // most hostnames are none, and are not to cost an error
		return netip.Addr{}
	}
	addr, err := netip.ParseAddr(string(text))
	if err != nil || !isServiceAddress(addr) {
		return netip.Addr{}
	}
	// An address has many texts, and only one of them is its label.
	var canonical [maxLabel + 2]byte
	if string(appendHostLabel(canonical[:0], addr)) != label {
		return netip.Addr{}
	}
	return addr
}

// parseHostLabel4 parses four decimal numbers without leading zeros, joined by -.
func parseHostLabel4(label string) (netip.Addr, bool) {
	var octets [4]byte
	part, digits, value := 0, 0, 0
	for i := 0; i <= len(label); i++ {
		if i == len(label) || label[i] == '-' {
			if digits == 0 || part > 3 {
				return netip.Addr{}, false
			}
			octets[part] = byte(value)
			part, digits, value = part+1, 0, 0
			continue
		}
		c := label[i]
		if c < '0' || c > '9' || digits > 0 && value == 0 {
			return netip.Addr{}, false
		}
		digits, value = digits+1, value*10+int(c-'0')
		if value > 255 {
			return netip.Addr{}, false
		}
	}
	addr := netip.AddrFrom4(octets)
	return addr, part == 4 && isServiceAddress(addr)
}

// equalFold is strings.EqualFold, and quicker where the case is the same, as it is in most queries.
func equalFold(a, b string) bool { return a == b || strings.EqualFold(a, b) }

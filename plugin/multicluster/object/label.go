// SPDX-License-Identifier: Apache-2.0

package object

import (
	"net/netip"
	"strings"
)

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

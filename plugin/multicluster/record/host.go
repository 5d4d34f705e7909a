// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

// appendHostLabel appends the label of an address: its text with - in place of . and :, and with a 0 if it would begin
// or end with a -.
func appendHostLabel(dst []byte, addr netip.Addr) []byte {
	if addr.Is4() {
		for i, octet := range addr.As4() {
			if i > 0 {
				dst = append(dst, '-')
			}
			if octet >= 100 {
				dst = append(dst, '0'+octet/100)
			}
			if octet >= 10 {
				dst = append(dst, '0'+octet/10%10)
			}
			dst = append(dst, '0'+octet%10)
		}
		return dst
	}
	start := len(dst)
	dst = addr.AppendTo(dst)
	if dst[start] == ':' {
		dst = addr.AppendTo(append(dst[:start], '0'))
	}
	for i, c := range dst[start:] {
		if c == ':' {
			dst[start+i] = '-'
		}
	}
	if dst[len(dst)-1] == '-' {
		dst = append(dst, '0')
	}
	return dst
}

// ParseHostLabel returns the address whose label this is, or the zero Addr. An address has many texts, and only one of
// them is its label.
func ParseHostLabel(label string) netip.Addr {
	var text [object.MaxLabel]byte
	if len(label) > len(text) {
		return netip.Addr{}
	}
	var octets [5]byte
	hyphens, decimal := 0, true
	for i := range len(label) {
		switch c := label[i]; {
		case c == '-':
			hyphens++
			text[i] = ':'
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
			decimal = decimal && c <= '9'
			octets[min(hyphens, 4)] = octets[min(hyphens, 4)]*10 + c - '0' // another address if it overflows
			text[i] = c
		default:
			return netip.Addr{}
		}
	}
	if addr := netip.AddrFrom4([4]byte(octets[:4])); hyphens == 3 && decimal && isHostLabel(label, addr) {
		return addr
	}
	if hyphens < 2 { // most hostnames are not addresses, and must not cost an error
		return netip.Addr{}
	}
	if addr, err := netip.ParseAddr(string(text[:len(label)])); err == nil && isHostLabel(label, addr) {
		return addr
	}
	return netip.Addr{}
}

// isHostLabel reports whether the label is that of the address of an endpoint.
func isHostLabel(label string, addr netip.Addr) bool {
	var text [object.MaxLabel]byte
	return object.IsServiceAddress(addr) && string(appendHostLabel(text[:0], addr)) == label
}

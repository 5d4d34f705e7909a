// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"

	"github.com/clusterset-dns/clusterset-dns/plugin/multicluster/object"
)

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

// ParseHostLabel returns the address whose label this is, or the zero Addr.
func ParseHostLabel(label string) netip.Addr {
	var buffer [object.MaxLabel]byte
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
	if err != nil || !object.IsServiceAddress(addr) {
		return netip.Addr{}
	}
	// An address has many texts, and only one of them is its label.
	var canonical [object.MaxLabel + 2]byte
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
	return addr, part == 4 && object.IsServiceAddress(addr)
}

// appendHostLabel4 appends the label of an IPv4 address.
func appendHostLabel4(dst, addr []byte) []byte {
	for i, octet := range addr {
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

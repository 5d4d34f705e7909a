// SPDX-License-Identifier: Apache-2.0

package name

import (
	"net/netip"
	"strconv"
	"strings"
)

// The zones of reverse names (RFC 1035, section 3.5, and RFC 3596, section 2.5).
const (
	reverse4 = ".in-addr.arpa."
	reverse6 = ".ip6.arpa."
)

// Address returns the address whose reverse name this is, in any case. The name of a part of an address, as
// 0.10.in-addr.arpa. is, has the zero address; ok is false for names that are neither.
func Address(reverse string) (addr netip.Addr, ok bool) {
	reverse = strings.ToLower(reverse)
	var labels []string
	if part, found := strings.CutSuffix(reverse, reverse4); found {
		labels = strings.Split(part, ".")
		return fromOctets(labels)
	}
	part, found := strings.CutSuffix(reverse, reverse6)
	if !found {
		return netip.Addr{}, false
	}
	return fromNibbles(strings.Split(part, "."))
}

// fromOctets reads decimal octets, the last first.
func fromOctets(labels []string) (addr netip.Addr, ok bool) {
	var octets [4]byte
	for i, label := range labels {
		n, err := strconv.ParseUint(label, 10, 8)
		if err != nil || i >= len(octets) || strconv.FormatUint(n, 10) != label {
			return netip.Addr{}, false
		}
		octets[len(octets)-1-i] = byte(n)
	}
	if len(labels) < len(octets) {
		return netip.Addr{}, true
	}
	return netip.AddrFrom4(octets), true
}

// fromNibbles reads hexadecimal digits, the last first.
func fromNibbles(labels []string) (addr netip.Addr, ok bool) {
	var octets [16]byte
	for i, label := range labels {
		n, err := strconv.ParseUint(label, 16, 4)
		if err != nil || i >= 2*len(octets) || len(label) != 1 {
			return netip.Addr{}, false
		}
		octets[len(octets)-1-i/2] |= byte(n) << (4 * (i % 2))
	}
	if len(labels) < 2*len(octets) {
		return netip.Addr{}, true
	}
	return netip.AddrFrom16(octets), true
}

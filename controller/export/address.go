// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"net/netip"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// refused are ranges and addresses that no pod of another cluster can have,
// beyond those that netip.Addr has a predicate for. Traffic sent there would
// reach the sender's own node or its cloud provider.
var refused = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),          // "this network", RFC 791
	netip.MustParsePrefix("255.255.255.255/32"), // broadcast, RFC 919
	netip.MustParsePrefix("::/96"),              // IPv4-compatible, RFC 4291
	netip.MustParsePrefix("64:ff9b::/96"),       // IPv4 behind NAT64, RFC 6052
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure's platform address
	netip.MustParsePrefix("fd00:ec2::254/128"),  // AWS's instance metadata
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud's metadata server
}

// checkAddress says what is wrong with the address of an endpoint, nil where
// nothing is: it must be of the slice's type and in canonical form, and must
// be one that a pod can have.
func checkAddress(text string, addressType discoveryv1.AddressType) (netip.Addr, error) {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address", text)
	}
	switch {
	case address.Is4In6():
		return address, fmt.Errorf("%s is an IPv4-mapped IPv6 address", address)
	case address.Zone() != "":
		return address, fmt.Errorf("%s has a zone", address)
	case address.Is4() != (addressType == discoveryv1.AddressTypeIPv4):
		return address, fmt.Errorf("%s is not an %s address", address, addressType)
	case !isCanonical(address, text):
		return address, fmt.Errorf("%q is not in canonical form, %s", text, address)
	case address.IsUnspecified(), address.IsLoopback(), address.IsMulticast(),
		address.IsLinkLocalUnicast():
		return address, fmt.Errorf("%s is not the address of a pod", address)
	}
	for _, prefix := range refused {
		if prefix.Contains(address) {
			return address, fmt.Errorf("%s is not the address of a pod", address)
		}
	}
	return address, nil
}

func isCanonical(address netip.Addr, text string) bool {
	var buffer [netipMaxLength]byte
	return string(address.AppendTo(buffer[:0])) == text
}

// netipMaxLength is enough for every address without a zone.
const netipMaxLength = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")

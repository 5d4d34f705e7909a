// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"net/netip"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// refused are the prefixes that no pod of another cluster can have, besides loopback, multicast and link-local addresses.
// Traffic to them would reach the client's node or its cloud provider.
//
// 240.0.0.0/4 (class E, RFC 1112) is not refused: GKE allows it for pods, and no node or provider uses it.
var refused = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),              // "this network", RFC 791
	netip.MustParsePrefix("255.255.255.255/32"),     // broadcast, RFC 919
	netip.MustParsePrefix("192.0.0.0/24"),           // protocol assignments, RFC 6890; Oracle Cloud's metadata service
	netip.MustParsePrefix("100.100.100.200/32"),     // Alibaba Cloud's metadata service
	netip.MustParsePrefix("168.63.129.16/32"),       // Azure's platform address
	netip.MustParsePrefix("::/96"),                  // IPv4-compatible, RFC 4291
	netip.MustParsePrefix("64:ff9b::/96"),           // IPv4 behind NAT64, RFC 6052
	netip.MustParsePrefix("64:ff9b:1::/48"),         // IPv4 behind local NAT64, RFC 8215
	netip.MustParsePrefix("2002::/16"),              // IPv4 behind 6to4, RFC 3056
	netip.MustParsePrefix("fd00:ec2::/32"),          // AWS: instance metadata, EKS Pod Identity, resolver
	netip.MustParsePrefix("fd20:ce::254/128"),       // Google Cloud's metadata server
	netip.MustParsePrefix("::ffff:0:0:0/96"),        // IPv4-translated, RFC 2765
	netip.MustParsePrefix("2001::/32"),              // IPv4 behind Teredo, RFC 4380
	netip.MustParsePrefix("fec0::/10"),              // site-local, deprecated by RFC 3879
	netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"), // Oracle Cloud's metadata service (its SDK)
	netip.MustParsePrefix("fd00:42::42/128"),        // Scaleway's metadata service (cloud-init)
	netip.MustParsePrefix("fd00:a9fe:a9fe::1/128"),  // Akamai's (Linode) metadata service (cloud-init)
	netip.MustParsePrefix("fd00:100::100:200/128"),  // Alibaba Cloud's metadata service (cloud-init)
}

// checkAddress parses the address of an endpoint. It returns an error if no pod can have it or if it is not of the
// slice's type. It need not be in canonical form.
func checkAddress(text string, addressType discoveryv1.AddressType) (netip.Addr, error) {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address", text)
	}
	if address.Is4() != (addressType == discoveryv1.AddressTypeIPv4) && !address.Is4In6() && address.Zone() == "" {
		return address, fmt.Errorf("%s is not an %s address", address, addressType)
	}
	return address, CheckPodAddress(address)
}

// CheckPodAddress returns an error if no pod of another cluster can have the address.
func CheckPodAddress(address netip.Addr) error {
	switch {
	case address.Is4In6():
		return fmt.Errorf("%s is an IPv4-mapped IPv6 address", address)
	case address.Zone() != "":
		return fmt.Errorf("%s has a zone", address)
	case address.IsLoopback(), address.IsMulticast(), address.IsLinkLocalUnicast(),
		slices.ContainsFunc(refused, func(p netip.Prefix) bool { return p.Contains(address) }):
		return fmt.Errorf("%s is not the address of a pod", address)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"net"
	"net/netip"
	"testing"
)

func TestFreeAddress(t *testing.T) {
	seen := map[netip.AddrPort]bool{}
	for range 20 {
		address, err := freeAddress()
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Errorf("%s came twice", address)
		}
		seen[address] = true
		if port := int(address.Port()); port < firstPort || port >= firstPort+portCount() {
			t.Errorf("%s is not below the ports of connections", address)
		}
		// The next one is taken by somebody else.
		next := netip.AddrPortFrom(address.Addr(), address.Port()+1)
		if packets, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", next.String()); err == nil {
			if another, err := freeAddress(); err != nil || another == next || seen[another] {
				t.Errorf("got %s, %v, while %s is taken", another, err, next)
			} else {
				seen[another] = true
			}
			packets.Close()
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestReverseAddress(t *testing.T) {
	for _, text := range []string{"10.1.0.255", "0.0.0.0", "fd00:1::a", "2001:db8:ffff:1:2:3:4:5"} {
		reverse, err := dns.ReverseAddr(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, asked := range []string{reverse, strings.ToUpper(reverse)} {
			if addr, ok := reverseAddress(asked); !ok || addr != netip.MustParseAddr(text) {
				t.Errorf("%s is the name of %v, %v; want %s", asked, addr, ok, text)
			}
		}
		for _, above, _ := strings.Cut(reverse, "."); strings.Count(above, ".") > 2; _, above,
			_ = strings.Cut(above, ".") {
			if addr, ok := reverseAddress(above); !ok || addr.IsValid() {
				t.Errorf("%s is the name of %v, %v; want that of a part of an address", above, addr, ok)
			}
		}
		if _, ok := reverseAddress("1." + reverse); ok {
			t.Errorf("1.%s is the name of an address", reverse)
		}
	}
	for _, reverse := range []string{
		"1.0.0.010.in-addr.arpa.", "256.0.0.10.in-addr.arpa.", "a.0.0.10.in-addr.arpa.", "..in-addr.arpa.",
		"0/25.0.0.10.in-addr.arpa.",
		"+1.0.0.10.in-addr.arpa.", "-1.10.in-addr.arpa.", "_sql._tcp.10.in-addr.arpa.", "g.ip6.arpa.", "10.ip6.arpa.",
		"1.2.3.4.clusterset.local.",
	} {
		if addr, ok := reverseAddress(reverse); ok {
			t.Errorf("%q is the name of %v", reverse, addr)
		}
	}
}

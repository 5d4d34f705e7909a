// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"net/netip"
	"slices"
	"testing"
)

func TestLocalAddresses(t *testing.T) {
	for name, test := range map[string]struct {
		hosts []string
		want  []netip.Addr
	}{
		"global": {
			[]string{"10.0.0.1", "169.254.20.10", "127.0.0.1"},
			[]netip.Addr{netip.MustParseAddr("10.0.0.1")},
		},
		"link-local":      {[]string{"169.254.20.10", "127.0.0.1"}, []netip.Addr{netip.MustParseAddr("169.254.20.10")}},
		"loopback":        {[]string{"127.0.0.1", "fe80::1%lo"}, []netip.Addr{netip.MustParseAddr("127.0.0.1")}},
		"none with sense": {[]string{"fe80::1%lo"}, nil},
	} {
		if got := localAddresses(test.hosts); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

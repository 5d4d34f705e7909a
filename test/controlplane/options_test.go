// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestDefaultRangesNeverOverlap(t *testing.T) {
	var (
		pool slotPool
		all  []netip.Prefix
	)
	for i := range slotCount {
		options, release, err := Options{Name: fmt.Sprintf("c%d", i), IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}}.complete(&pool)
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		if !options.PodCIDRs[0].Addr().Is6() || !options.PodCIDRs[1].Addr().Is4() {
			t.Errorf("the order of the families is lost: %v", options.PodCIDRs)
		}
		all = slices.Concat(all, options.PodCIDRs, options.ServiceCIDRs)
	}
	for i, a := range all {
		if a != a.Masked() {
			t.Errorf("%s has host bits", a)
		}
		for _, b := range all[:i] {
			if a.Overlaps(b) {
				t.Fatalf("%s overlaps %s", a, b)
			}
		}
	}
	if _, _, err := (Options{Name: "more"}).complete(&pool); err == nil {
		t.Error("a cluster too many gets ranges")
	}
}

func TestSlotsComeBack(t *testing.T) {
	var pool slotPool
	first, release, err := Options{Name: "first"}.complete(&pool)
	if err != nil {
		t.Fatal(err)
	}
	second, releaseSecond, err := Options{Name: "second"}.complete(&pool)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseSecond()
	release()
	release() // no effect on whoever has it now
	third, releaseThird, err := Options{Name: "third"}.complete(&pool)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseThird()
	if third.PodCIDRs[0] != first.PodCIDRs[0] || third.PodCIDRs[0] == second.PodCIDRs[0] {
		t.Errorf("ranges: first %v, second %v, third %v", first.PodCIDRs, second.PodCIDRs, third.PodCIDRs)
	}
}

func TestOptionsThatAreWrong(t *testing.T) {
	var pool slotPool
	for name, options := range map[string]Options{
		"no name":               {},
		"a name that is no DNS": {Name: "East"},
		"no such family":        {Name: "east", IPFamilies: []corev1.IPFamily{"IPX"}},
	} {
		if _, _, err := options.complete(&pool); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSubnet(t *testing.T) {
	for _, test := range []struct {
		prefix   string
		count, i int
		want     string
	}{
		{"10.0.0.0/16", 1, 0, "10.0.0.0/16"},
		{"10.0.0.0/16", 2, 0, "10.0.0.0/17"},
		{"10.0.0.0/16", 2, 1, "10.0.128.0/17"},
		{"10.0.0.0/16", 3, 2, "10.0.128.0/18"},
		{"10.0.7.9/16", 3, 1, "10.0.64.0/18"},
		{"10.0.0.0/22", 8, 5, "10.0.2.128/25"},
		{"fd00:1::/48", 4, 3, "fd00:1:0:c000::/50"},
		{"10.0.0.0/31", 4, 0, ""},
	} {
		got, err := subnet(netip.MustParsePrefix(test.prefix), test.count, test.i)
		if (err != nil) != (test.want == "") || (err == nil && got.String() != test.want) {
			t.Errorf("part %d of %d of %s is %s, %v; want %s", test.i, test.count, test.prefix, got, err, test.want)
		}
	}
}

func TestNodeAddress(t *testing.T) {
	for share, want := range map[string]string{"10.0.128.0/17": "10.0.255.254", "10.1.0.0/24": "10.1.0.254", "fd00:1::/64": "fd00:1::ffff:ffff:ffff:fffe"} {
		if got := nodeAddress(netip.MustParsePrefix(share)).String(); got != want {
			t.Errorf("the node of %s has %s, want %s", share, got, want)
		}
	}
}

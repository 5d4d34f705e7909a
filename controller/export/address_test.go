// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
)

func TestCheckAddress(t *testing.T) {
	const v4, v6 = discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6
	const good = "10.1.2.3 100.64.0.1 100.100.100.199 192.0.1.1 240.0.0.1 192.0.2.1 fd00::1 2001:db8::1 2001:1::1 fd00:c1::1"
	const noPods = "0.0.0.0 0.1.2.3 127.0.0.1 127.8.0.1 169.254.169.254 169.254.0.1 168.63.129.16 100.100.100.200 192.0.0.192 " +
		"224.0.0.1 239.1.2.3 255.255.255.255 :: ::1 ::a01:203 fe80::1 ff02::1 64:ff9b::a9fe:a9fe " +
		"64:ff9b:1::a9fe:a9fe 2002:a9fe:a9fe::1 fd00:ec2::254 fd00:ec2::23 fd00:ec2::253 fd20:ce::254 " +
		"fd00:c1::a9fe:a9fe fd00:42::42 fd00:a9fe:a9fe::1 fd00:100::100:200 ::ffff:0:a9fe:a9fe 2001:0:a9fe:a9fe::1 " +
		"fec0::1"
	type row struct {
		address     string
		addressType discoveryv1.AddressType
		want        string // empty for a good one
	}
	rows := []row{
		{"", v4, `"" is not an IP address`},
		{"10.1.2", v4, `"10.1.2" is not an IP address`},
		{"10.1.2.3/32", v4, `"10.1.2.3/32" is not an IP address`},
		{"010.1.2.3", v4, `"010.1.2.3" is not an IP address`},
		{"web.demo", v4, `"web.demo" is not an IP address`},
		{"10.1.2.3", v6, `10.1.2.3 is not an IPv6 address`},
		{"fd00::1", v4, `fd00::1 is not an IPv4 address`},
		{"fd00:0::1", v6, ""}, // in another form, which is not its to judge
		{"fd00::1%eth0", v6, `fd00::1%eth0 has a zone`},
		{"::ffff:10.1.2.3", v6, `::ffff:10.1.2.3 is an IPv4-mapped IPv6 address`},
		{"::ffff:10.1.2.3", v4, `::ffff:10.1.2.3 is an IPv4-mapped IPv6 address`},
	}
	for i, list := range []string{good, noPods} {
		for address := range strings.FieldsSeq(list) {
			each := row{address, v4, ""}
			if strings.Contains(address, ":") {
				each.addressType = v6
			}
			if i == 1 {
				each.want = address + " is not the address of a pod"
			}
			rows = append(rows, each)
		}
	}
	for _, test := range rows {
		_, err := checkAddress(test.address, test.addressType)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("checkAddress(%q, %s) = %q, want %q", test.address, test.addressType, got, test.want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestCheckAddress(t *testing.T) {
	const good = "10.1.2.3 100.64.0.1 100.100.100.199 192.0.1.1 240.0.0.1 192.0.2.1 fd00::1 2001:db8::1 2001:1::1 fd00:c1::1"
	const noPods = "0.0.0.0 0.1.2.3 127.0.0.1 127.8.0.1 169.254.169.254 169.254.0.1 168.63.129.16 100.100.100.200 192.0.0.192 " +
		"224.0.0.1 239.1.2.3 255.255.255.255 :: ::1 ::a01:203 fe80::1 ff02::1 64:ff9b::a9fe:a9fe " +
		"64:ff9b:1::a9fe:a9fe 2002:a9fe:a9fe::1 fd00:ec2::254 fd00:ec2::23 fd00:ec2::253 fd20:ce::254 " +
		"fd00:c1::a9fe:a9fe fd00:42::42 fd00:a9fe:a9fe::1 fd00:100::100:200 ::ffff:0:a9fe:a9fe 2001:0:a9fe:a9fe::1 " +
		"fec0::1"
	wants := map[string]string{ // address type and address; empty for a good one
		"IPv4 ":                `"" is not an IP address`,
		"IPv4 10.1.2":          `"10.1.2" is not an IP address`,
		"IPv4 10.1.2.3/32":     `"10.1.2.3/32" is not an IP address`,
		"IPv4 010.1.2.3":       `"010.1.2.3" is not an IP address`,
		"IPv4 web.demo":        `"web.demo" is not an IP address`,
		"IPv6 10.1.2.3":        `10.1.2.3 is not an IPv6 address`,
		"IPv4 fd00::1":         `fd00::1 is not an IPv4 address`,
		"IPv6 fd00:0::1":       "", // in another form, which is not its to judge
		"IPv6 fd00::1%eth0":    `fd00::1%eth0 has a zone`,
		"IPv6 ::ffff:10.1.2.3": `::ffff:10.1.2.3 is an IPv4-mapped IPv6 address`,
		"IPv4 ::ffff:10.1.2.3": `::ffff:10.1.2.3 is an IPv4-mapped IPv6 address`,
	}
	for list, want := range map[string]string{good: "", noPods: " is not the address of a pod"} {
		for address := range strings.FieldsSeq(list) {
			addressType := "IPv4 "
			if strings.Contains(address, ":") {
				addressType = "IPv6 "
			}
			wants[addressType+address] = want
			if want != "" {
				wants[addressType+address] = address + want
			}
		}
	}
	for text, want := range wants {
		addressType, address, _ := strings.Cut(text, " ")
		_, err := checkAddress(address, discoveryv1.AddressType(addressType))
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestLabels: a hostname and a zone are valid as Kubernetes says.
func TestLabels(t *testing.T) {
	for _, text := range append(strings.Fields("a 0 A a-b a_b a.b -a a- _a a. a/b é a\xff"), "a b", strings.Repeat("a", 63), strings.Repeat("a", 64)) {
		reader := endpointReader{addressType: discoveryv1.AddressTypeIPv4, found: &problems{}}
		read := reader.read([]discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}, Hostname: &text, Zone: &text}})[0]
		if (read.Hostname == nil) != (len(validation.IsDNS1123Label(text)) > 0) ||
			(read.Zone == nil) != (len(validation.IsValidLabelValue(text)) > 0) {
			t.Errorf("%q: hostname %v, zone %v", text, read.Hostname, read.Zone)
		}
	}
}

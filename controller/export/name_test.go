// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestDerivedServiceName has names by the reference implementation's rule, computed without this code: printf %s demo/web
// | sha256sum, first 50 bits in base32hex. Collisions of 50 bits can be found, so names for node ports are longer.
func TestDerivedServiceName(t *testing.T) {
	for service, want := range map[types.NamespacedName]string{
		{Namespace: "demo", Name: "web"}: "derived-scaifns3gd",
		{Namespace: "demo", Name: "db"}:  "derived-39ieegbq8k",
		{Namespace: "jack", Name: "web"}: "derived-q7hlo4grm3", // as in docs/use/ingress.md
	} {
		if got := DerivedServiceName(service); got != want {
			t.Errorf("DerivedServiceName(%s) = %q, want %q", service, got, want)
		}
		if name := NodePortServiceName(service); len(name) == len(want) || len(validation.IsDNS1123Label(name)) > 0 {
			t.Errorf("%s may be the name of a derived Service", name)
		}
	}
}

func TestSliceName(t *testing.T) {
	long := strings.Repeat("x", 63)
	seen := make(map[string]string)
	for _, text := range []string{ // cluster, namespace, name, source and type
		"east,demo,web,web-1,IPv4", "east,demo,web,web-1,IPv6", "east,demo,web,web-2,IPv4", "east,demo,web,,IPv4", "west,demo,web,web-1,IPv4",
		"east,test,web,web-1,IPv4", "b-c,demo,a,web-1,IPv4", "c,demo,a-b,web-1,IPv4", "east.registry,demo,web,web-1,IPv4",
		strings.Join([]string{long, long, long, strings.Repeat("y", 253), "IPv6"}, ","),
	} {
		of := strings.Split(text, ",")
		name := SliceName(of[0], types.NamespacedName{Namespace: of[1], Name: of[2]}, of[3], discoveryv1.AddressType(of[4]))
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			t.Errorf("%s: the name is %q: %v", text, name, wrong)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s have the name %q", text, other, name)
		}
		seen[name] = text
	}
	if got, want := SliceName("east", web, "web-1", discoveryv1.AddressTypeIPv4),
		"web-east-stuapkc1dvqa4r8nqlg0"; got != want {
		t.Errorf("got %q, want %q: another format renames the slices of all clusters", got, want)
	}
}

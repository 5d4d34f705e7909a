// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// sliceOf reads endpoints as "10.1.0.1 node-1 ready".
func sliceOf(port string, endpoints ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{
		{Name: ptr.To("other"), Port: ptr.To(int32(1)), Protocol: ptr.To(corev1.ProtocolTCP)},
		{Name: &port, Port: ptr.To(int32(8081)), Protocol: ptr.To(corev1.ProtocolTCP)},
	}}
	for _, text := range endpoints {
		words := strings.Fields(text)
		endpoint := discoveryv1.Endpoint{Addresses: words[:1]}
		if words[1] != "-" {
			endpoint.NodeName = &words[1]
		}
		for _, word := range words[2:] {
			switch word {
			case "ready":
				endpoint.Conditions.Ready = ptr.To(true)
			case "unready":
				endpoint.Conditions.Ready = ptr.To(false)
			case "terminating":
				endpoint.Conditions.Terminating = ptr.To(true)
			}
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	return slice
}

// everywhere are the ranges of a member without restrictions.
var everywhere = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

func TestOf(t *testing.T) {
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("10.2.%d.1 node-%d ready", i, i))
	}
	const both = "10.1.0.1:8081,10.1.0.2:8081"
	for name, test := range map[string]struct {
		slices []*discoveryv1.EndpointSlice
		want   string
	}{
		"none":      {nil, ""},
		"two nodes": {[]*discoveryv1.EndpointSlice{sliceOf("probe", "10.1.0.2 n2 ready", "10.1.0.1 n1")}, both},
		"those that may not answer": {[]*discoveryv1.EndpointSlice{
			sliceOf("probe", "10.1.0.1 n1 unready", "10.1.0.2 n2 ready terminating", "10.1.0.3 n3 ready"),
		}, "10.1.0.3:8081"},
		"in several slices, of which one is old": {[]*discoveryv1.EndpointSlice{
			sliceOf("probe", "10.1.0.2 n1"), sliceOf("probe", "10.1.0.1 n1", "10.1.0.2 n1"),
		}, both},
		"IPv6":         {[]*discoveryv1.EndpointSlice{sliceOf("probe", "fd00::1 n1")}, "[fd00::1]:8081"},
		"no such port": {[]*discoveryv1.EndpointSlice{sliceOf("http", "10.1.0.1 n1")}, ""},
		"a name":       {[]*discoveryv1.EndpointSlice{sliceOf("probe", "pod.example n1")}, ""},
		"eight": {
			[]*discoveryv1.EndpointSlice{sliceOf("probe", many...)},
			"10.2.0.1:8081,10.2.1.1:8081,10.2.2.1:8081,10.2.3.1:8081,10.2.4.1:8081,10.2.5.1:8081,10.2.6.1:8081,10.2.7.1:8081",
		},
	} {
		targets := Of(test.slices)
		if got := Encode(targets); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		slices.Reverse(test.slices)
		for _, each := range test.slices {
			slices.Reverse(each.Endpoints)
		}
		if again := Of(test.slices); !reflect.DeepEqual(again, targets) {
			t.Errorf("%s: another order gives %v, want %v", name, again, targets)
		}
		if read, err := Decode(test.want, everywhere); err != nil || len(read) != len(targets) || len(read) > 0 &&
			!reflect.DeepEqual(read, targets) {
			t.Errorf("%s: read as %v, %v", name, read, err)
		}
	}
}

func TestDecode(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.0.1":                     "probe target",
		"10.1.0.1:80":                  "use port 1024 or higher",
		"127.0.0.1:8081":               "not the address of a pod",
		"169.254.169.254:8081":         "not the address of a pod",
		"[::ffff:10.1.0.1]:8081":       "IPv4-mapped",
		"[fe80::1%eth0]:8081":          "zone",
		"10.1.0.1:8081=a":              "probe target",
		"web.example:8081":             "probe target",
		"10.1.0.1:8081,":               "probe target",
		strings.Repeat("10.1.0.1,", 9): "at most 8",
	} {
		if targets, err := Decode(text, everywhere); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: got %v, %v, want an error with %q", text, targets, err, want)
		}
	}
	for want, ranges := range map[string][]netip.Prefix{
		"": nil, "10.2.0.1:8081": {netip.MustParsePrefix("10.2.0.0/16")}, "10.1.0.1:8081,10.2.0.1:8081": everywhere,
	} {
		// The order of a hostile member, with a probe target twice.
		if targets, err := Decode("10.2.0.1:8081,10.1.0.1:8081,10.2.0.1:8081", ranges); err != nil || Encode(targets) != want {
			t.Errorf("in the ranges %v: got %v, %v, want %q", ranges, targets, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("10.1.0.1:8081,[fd00::1]:8081")
	f.Fuzz(func(t *testing.T, text string) {
		targets, err := Decode(text, everywhere)
		if err != nil {
			return
		}
		again, err := Decode(Encode(targets), everywhere)
		if err != nil || !reflect.DeepEqual(again, targets) {
			t.Errorf("%q is read as %v, and then as %v, %v", text, targets, again, err)
		}
	})
}

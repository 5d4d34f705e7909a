// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// parse reads a slice that serves the ports, as in "80 81: a@node-1 !b -", whose endpoints are their zones, "-" for none,
// with "!" before unready ones and the node after "@". "v6 80:" is a slice of IPv6.
func parse(text string) export.Slice {
	text, v6 := strings.CutPrefix(text, "v6 ")
	ports, endpoints, _ := strings.Cut(text, ":")
	slice := newSlice("web", strings.ReplaceAll(ports, " ", "/TCP ")+"/TCP", "")
	if v6 {
		slice.AddressType = discoveryv1.AddressTypeIPv6
	}
	for i, field := range strings.Fields(endpoints) {
		zone, unready := strings.CutPrefix(field, "!")
		zone, node, _ := strings.Cut(zone, "@")
		endpoint := discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("10.0.0.%d", i+1)},
			Conditions: export.Conditions(!unready, !unready, false),
		}
		if zone != "-" {
			endpoint.Zone = ptr.To(zone)
		}
		if node != "" {
			endpoint.NodeName = ptr.To(node)
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	return slice
}

// text is the hints of endpoints, as in "a,b@node-1 *", where * is a hint that no local node follows.
func text(endpoints []discoveryv1.Endpoint) string {
	shown := func(name string) string {
		if ForNobody(name) {
			return "*"
		}
		return name
	}
	var all []string
	for _, endpoint := range endpoints {
		if endpoint.Hints == nil {
			all = append(all, "none")
			continue
		}
		var zones []string
		for _, zone := range endpoint.Hints.ForZones {
			zones = append(zones, shown(zone.Name))
		}
		each := strings.Join(zones, ",")
		for _, node := range endpoint.Hints.ForNodes {
			each += "@" + shown(node.Name)
		}
		all = append(all, each)
	}
	return strings.Join(all, " ")
}

// TestHints is the decision table of hints.
func TestHints(t *testing.T) {
	const nineZones = "1 2 3 4 5 6 7 8 9"
	type preference struct {
		distribution string
		cluster      bool
	}
	zone, node, cluster := preference{"PreferSameZone", false}, preference{"PreferSameNode", false}, preference{"", true}
	both, all := preference{"PreferClose", true}, preference{"PreferSameNode", true}
	for name, test := range map[string]struct {
		preference
		zones              string
		own, other         string
		wantOwn, wantOther string
	}{
		"cluster":              {cluster, "a b", "80: a b - c", "80: a b - c", "a,b a,b a,b a,b", "* * * *"},
		"cluster, eight zones": {cluster, nineZones[2:], "80: 2", "80: 2", "2,3,4,5,6,7,8,9", "*"},

		"zone":           {zone, "a b", "80: a b c -", "80: a b c -", "a b c *", "a b c *"},
		"node":           {node, "a b", "80: a@m b@n -@n b", "80: a -", "a@m b@n *@n b@*", "a@* *@*"},
		"node, no zones": {node, "", "80: a@n", "80: a", "*@n", "*@*"},

		"both, a zone has none":   {both, "a b c", "80: a b", "80: c", "a,c b,c", "*"},
		"both, a zone of no node": {both, "a b", "80: a z", "80: z", "a,b b", "*"},
		// kube-proxy evaluates each port and family separately.
		"both, a port has none": {both, "a b", "80 81: a | 80: b | v6 80: a b", "80: a", "a,b | b | a b", "*"},
		"all":                   {all, "a b", "80: a@m b@n", "80: a b", "a@m b@n", "*@* *@*"},
	} {
		t.Run(name, func(t *testing.T) {
			own, nodes := &export.View{}, Nodes{Zones: strings.Fields(test.zones)}
			for each := range strings.SplitSeq(test.own, " | ") {
				own.Slices = append(own.Slices, parse(each))
			}
			hints, other := newHints(test.distribution, test.cluster && nodes.CanPreferCluster(), nodes, own), parse(test.other)
			before := fmt.Sprint(own, other)
			var got []string
			for i := range own.Slices {
				got = append(got, text(hints.of(true, &own.Slices[i], own.Slices[i].Endpoints)))
			}
			if strings.Join(got, " | ") != test.wantOwn {
				t.Errorf("own: got %s, want %s", got, test.wantOwn)
			}
			if got := text(hints.of(false, &other, other.Endpoints)); got != test.wantOther {
				t.Errorf("other: got %s, want %s", got, test.wantOther)
			}
			if fmt.Sprint(own, other) != before {
				t.Error("the input changed")
			}
		})
	}
}

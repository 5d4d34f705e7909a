// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"reflect"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

// parse reads endpoints, which are their zones, "-" for none, with the node after "@", as in "a@node-1 b -".
func parse(text string) (endpoints []discoveryv1.Endpoint) {
	for _, field := range strings.Fields(text) {
		zone, node, _ := strings.Cut(field, "@")
		var endpoint discoveryv1.Endpoint
		if zone != "-" {
			endpoint.Zone = ptr.To(zone)
		}
		if node != "" {
			endpoint.NodeName = ptr.To(node)
		}
		endpoints = append(endpoints, endpoint)
	}
	return endpoints
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
		"cluster":              {cluster, "a b", "a b - c", "a b - c", "a,b a,b a,b a,b", "* * * *"},
		"cluster, eight zones": {cluster, nineZones[2:], "2", "2", "2,3,4,5,6,7,8,9", "*"},

		"zone":           {zone, "a b", "a b c -", "a b c -", "a b c *", "a b c *"},
		"node":           {node, "a b", "a@m b@n -@n b", "a -", "a@m b@n *@n b@*", "a@* *@*"},
		"node, no zones": {node, "", "a@n", "a", "*@n", "*@*"},

		"zone and cluster": {both, "a b", "a b z", "a z", "a,b a,b a,b", "* *"},
		"node and cluster": {all, "a b", "a@m b@n", "a b", "a,b@m a,b@n", "*@* *@*"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := Nodes{Zones: strings.Fields(test.zones)}
			hints, own := newHints(test.distribution, test.cluster && nodes.CanPreferCluster(), nodes), parse(test.own)
			if got := text(hints.of(true, own)); got != test.wantOwn {
				t.Errorf("own: got %s, want %s", got, test.wantOwn)
			}
			if got := text(hints.of(false, parse(test.other))); got != test.wantOther {
				t.Errorf("other: got %s, want %s", got, test.wantOther)
			}
			if !reflect.DeepEqual(own, parse(test.own)) {
				t.Error("the input changed")
			}
		})
	}
}

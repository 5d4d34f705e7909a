// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// usedText is what kube-proxy would use first, by cluster: the ready endpoints of all slices, or else those that serve
// and terminate, with "~" before.
func usedText(result merge.Result) string {
	used := map[string][]string{}
	for _, slice := range result.EndpointSlices {
		for _, endpoint := range slice.Endpoints {
			switch c := endpoint.Conditions; {
			case isReady(&endpoint):
				used[""] = append(used[""], endpoint.Addresses[0])
			case *c.Serving && *c.Terminating:
				used["~"] = append(used["~"], "~"+endpoint.Addresses[0])
			}
		}
	}
	ready := slices.Concat(used[""], used["~"])
	slices.Sort(ready)
	return strings.Join(ready, " ")
}

// TestOrder: the endpoints that are used first, and after "~" those that are demoted, as east sees them. The order of
// contributions does not matter, the merge comes to rest, and what is read of the slices is what was exported.
func TestOrder(t *testing.T) {
	const e, n, w, s = "10.1.0.1", "10.2.0.1", "10.3.0.1", "10.4.0.1"
	none := map[string]string{}
	for name, test := range map[string]struct {
		prefer string
		zones  string
		odd    map[string]string
		want   []string
	}{
		"no order":               {"", "", none, []string{e, n, w, s}},
		"this cluster":           {"local", "", none, []string{e, "~" + n, "~" + w, "~" + s}},
		"the same, by hints":     {"local", "a", none, []string{e, n, w, s}},
		"another cluster":        {"west", "", none, []string{w, "~" + e, "~" + n, "~" + s}},
		"by property":            {"same(region)", "", none, []string{e, n, "~" + w, "~" + s}},
		"the second tier":        {"west > region=eu", "", map[string]string{"west": "down"}, []string{e, n, "~" + s}},
		"the last tier":          {"west > near", "", map[string]string{"west": "down", "near": "down"}, []string{e, s}},
		"silent is after all":    {"west", "", map[string]string{"west": "silent"}, []string{e, n, s, "~" + w}},
		"all silent":             {"west", "", map[string]string{"west": "silent", "east": "silent", "near": "silent", "south": "silent"}, []string{w, "~" + e, "~" + n, "~" + s}},
		"silent, and none else":  {"west > east", "", map[string]string{"west": "silent", "near": "silent", "east": "down", "south": "down"}, []string{w, "~" + n}},
		"hints, and an order":    {"local > west", "a", none, []string{e, w, "~" + n, "~" + s}},
		"hints, west is down":    {"local > west > near", "a", map[string]string{"west": "down"}, []string{e, n, "~" + s}},
		"hints, this is drained": {"local > west", "a", map[string]string{"east": "silent"}, []string{w, "~" + e, "~" + n, "~" + s}},
		"hints, others silent":   {"local > west", "a", map[string]string{"west": "silent", "near": "silent", "south": "silent"}, []string{e, "~" + n, "~" + s, "~" + w}},
		"saturated":              {"", "", map[string]string{"west": "saturated"}, []string{e, n, s, "~" + w}},
		"all saturated":          {"west", "", map[string]string{"west": "saturated", "east": "saturated", "near": "saturated", "south": "saturated"}, []string{w, "~" + e, "~" + n, "~" + s}},
		"saturated, then silent": {"", "", map[string]string{"west": "saturated", "east": "silent", "near": "down", "south": "down"}, []string{w, "~" + e}},
		"the best is saturated":  {"west > near", "", map[string]string{"west": "saturated"}, []string{n, "~" + e, "~" + s, "~" + w}},
		"hints, and saturated":   {"local", "a", map[string]string{"east": "saturated", "near": "saturated"}, []string{w, s, "~" + e, "~" + n}},
		"hints, others are":      {"local", "a", map[string]string{"west": "saturated", "near": "saturated", "south": "saturated"}, []string{e, "~" + n, "~" + s, "~" + w}},
		"invalid":                {"west >", "", none, []string{e, n, w, s}},
	} {
		t.Run(name, func(t *testing.T) {
			contributions := exporting(t, "prefer="+test.prefer, "east=1 near=1 west=1 south=1", test.odd)
			observed := newObserved()
			observed.Nodes.Zones = strings.Fields(test.zones)
			slices.Sort(test.want)
			observed, result := settled(t, observed, contributions)
			diff(t, "used", usedText(result), strings.Join(test.want, " "))
			for _, c := range contributions {
				view, problems := export.FromSlices(export.Source{Cluster: c.View.Cluster}, web,
					export.SlicesOf(c.View.Cluster, result.EndpointSlices), nil)
				diff(t, "view of "+c.View.Cluster, view, c.View)
				diff(t, "problems", len(problems), 0)
			}
			slices.Reverse(contributions)
			diff(t, "in another order", merged(observed, contributions), result)
		})
	}
}

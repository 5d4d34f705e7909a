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

// regions are the properties of clusters; those of south are not known.
var regions = map[string]map[string]string{"east": {"region": "eu"}, "near": {"region": "eu"}, "west": {"region": "us"}}

// TestOrder: the endpoints that are used first, and after "~" those that are demoted, as east sees them. The order of
// contributions does not matter, the merge comes to rest, and what is read of the slices is what was exported.
func TestOrder(t *testing.T) {
	const e, n, w, s = "10.1.0.1", "10.2.0.1", "10.3.0.1", "10.4.0.1"
	none := map[string]string{}
	for name, test := range map[string]struct {
		prefer string
		zones  string
		odd    map[string]string // cluster to "down", "silent" or "saturated"
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
			var contributions []merge.Contribution
			for i, cluster := range []string{"east", "near", "west", "south"} {
				address := []string{e, n, w, s}[i]
				if test.odd[cluster] == "down" {
					address = "!" + address
				}
				view := newView(cluster, 1+i, "80/TCP", address, prefers(test.prefer))
				view.Spec.Saturated = test.odd[cluster] == "saturated"
				contributions = append(contributions, merge.Contribution{View: view, Demote: test.odd[cluster] == "silent"})
			}
			observed := newObserved("east")
			observed.Properties = regions
			observed.Nodes.Zones = strings.Fields(test.zones)
			slices.Sort(test.want)
			_, result := settled(t, observed, contributions)
			diff(t, "used", usedText(result), strings.Join(test.want, " "))
			checkHints(t, result.EndpointSlices)
			for _, c := range contributions {
				diff(t, "view of "+c.View.Cluster, reread(t, c.View.Cluster, result), c.View)
			}
			slices.Reverse(contributions)
			_, again := settled(t, observed, contributions)
			diff(t, "in another order", again, result)
		})
	}
}

// reread is the view of a cluster from its slices in a result: those that it publishes, or the copies of them.
func reread(t testing.TB, cluster string, result merge.Result) *export.View {
	t.Helper()
	view, found := export.FromSlices(export.Source{Cluster: cluster}, web, export.SlicesOf(cluster, result.EndpointSlices), nil)
	if len(found) > 0 {
		t.Fatalf("slices of %s are read with problems: %v", cluster, found)
	}
	return view
}

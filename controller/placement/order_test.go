// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// orderText is the clusters, each with "~" for each endpoint that is demoted and "!" for each that is not used, and in
// parentheses the annotation of its slice for DNS servers.
func orderText(result merge.Result) string {
	var texts []string
	for _, slice := range result.EndpointSlices {
		text := slice.Labels[export.LabelSourceCluster]
		for _, endpoint := range slice.Endpoints {
			switch c := endpoint.Conditions; {
			case export.IsReady(&endpoint):
			case *c.Serving && *c.Terminating:
				text += "~"
			default:
				text += "!"
			}
		}
		if srv, found := slice.Annotations[export.AnnotationSRV]; found {
			text += "(" + srv + ")"
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

var inParentheses = regexp.MustCompile(`\(.*?\)`)

// TestOrder: which of the two endpoints of each cluster east uses first, and the annotation for its DNS servers, which
// only headless imports have: kube-proxy does the same for cluster IPs. The order of contributions does not matter, the
// merge converges, and the views read from the slices equal the exported ones.
func TestOrder(t *testing.T) {
	type odd map[string]string
	for name, test := range map[string]struct {
		asks, zones string
		odd         odd
		headless    string
		clusterIP   string // empty if it differs only by the annotation
	}{
		"this cluster":            {"prefer=cluster", "", nil, "east near south west", "east near~~ south~~ west~~"}, // DNS servers do it
		"tiers":                   {"prefer=near > west", "", nil, "east~~(priority=4) near south~~(priority=4) west~~(priority=2)", ""},
		"invalid":                 {"prefer=near >", "", nil, "east near south west", ""},
		"the best is silent":      {"prefer=near > west", "", odd{"near": "silent"}, "east~~(priority=4) near~~ south~~(priority=4) west(priority=2)", ""},
		"all silent":              {"prefer=near", "", odd{"near": "silent", "east": "silent", "west": "silent", "south": "silent"}, "east~~ near(priority=64) south~~ west~~", ""},
		"hints, west is down":     {"prefer=local > west > near", "a", odd{"west": "down"}, "east near~~(priority=4) south~~(priority=6) west!!", "east near south~~ west!!"},
		"hints, this is drained":  {"prefer=local > west", "a", odd{"east": "silent"}, "east~~ near~~(priority=4) south~~(priority=4) west(priority=2)", ""},
		"overloaded, then silent": {"prefer=", "", odd{"west": "overloaded", "east": "silent", "near": "down", "south": "down"}, "east~~ near!! south!! west(priority=32)", ""},
		"allowed clusters":        {"prefer=near|allowed-clusters=east; near", "", nil, "east~~(priority=2) near south!! west!!", ""},
		"shares": {
			"weights=west=10", "", nil,
			"east(priority=0 weight=7680) near(priority=0 weight=7680) south(priority=0 weight=7680) west~(priority=0 weight=2560)", "",
		},
		"no share":   {"weights=west=0", "", nil, "east(priority=0 weight=8704) near(priority=0 weight=8704) south(priority=0 weight=8704) west~~(priority=1)", ""},
		"all shares": {"weights=west=100", "", nil, "east~~(priority=1) near~~(priority=1) south~~(priority=1) west(priority=0 weight=25600)", ""},
		"shares in tiers": {
			"prefer=east; near|weights=west=10, near=20", "", nil,
			"east(priority=0 weight=20480) near~(priority=0 weight=5120) south~~(priority=2 weight=23552) west~~(priority=2 weight=2560)", "",
		},
		"terminating": {
			"prefer=near", "",
			odd{"near": "terminating", "west": "terminating"},
			"east~~(priority=2) near~ south~~(priority=2) west~~(priority=2 terminating=1)", "",
		},
	} {
		for kind, want := range map[v1beta1.ServiceImportType]string{
			v1beta1.Headless: test.headless, v1beta1.ClusterSetIP: cmp.Or(test.clusterIP, inParentheses.ReplaceAllString(test.headless, "")),
		} {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				contributions := exporting(t, test.asks, "east=2 near=2 west=2 south=2", test.odd, func(v *export.View) { v.Spec.Type = kind })
				observed, result := settled(t, newObserved(strings.Fields(test.zones)...), contributions)
				diff(t, "order", orderText(result), want)
				for _, c := range contributions {
					from := export.Source{Cluster: c.View.Cluster, Keep: c.View.Cluster != observed.Cluster}
					all := export.SlicesOf(from.Cluster, result.EndpointSlices)
					view, problems, _ := export.FromSlices(from, web, all, all)
					diff(t, "view of "+c.View.Cluster, view, c.View)
					diff(t, "problems", len(problems), 0)
				}
				slices.Reverse(contributions)
				diff(t, "in another order", merged(observed, contributions), result)
			})
		}
	}
}

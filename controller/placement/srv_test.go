// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// srvText is the annotations of slices for SRV answers, by cluster, and "~" if endpoints of it are demoted.
func srvText(result merge.Result) string {
	var texts []string
	for _, slice := range result.EndpointSlices {
		text := slice.Labels[export.LabelSourceCluster]
		if slices.ContainsFunc(slice.Endpoints, isDemoted) {
			text += "~"
		}
		if srv, found := slice.Annotations[export.AnnotationSRV]; found {
			text += "(" + srv + ")"
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

// TestSRV: what DNS servers in east are told of the slices of east, near, west and south.
func TestSRV(t *testing.T) {
	type odd map[string]string
	for name, test := range map[string]struct {
		prefer, weights, within string
		odd                     odd
		want                    string
	}{
		"nothing":              {"", "", "", nil, "east near south west"},
		"the local cluster":    {"cluster", "", "", nil, "east near south west"}, // DNS servers do it
		"silent":               {"", "", "", odd{"west": "silent"}, "east near south west~"},
		"tiers":                {"near > west", "", "", nil, "east~(priority=4) near south~(priority=4) west~(priority=2)"},
		"the second tier":      {"near > west", "", "", odd{"near": "down"}, "east~(priority=4) near south~(priority=4) west(priority=2)"},
		"the last tier":        {"near > west", "", "", odd{"near": "down", "west": "down"}, "east(priority=4) near south(priority=4) west"},
		"invalid":              {"near >", "", "", nil, "east near south west"},
		"silent, and tiers":    {"near > west", "", "", odd{"west": "silent"}, "east~(priority=4) near south~(priority=4) west~"},
		"the best is silent":   {"near > west", "", "", odd{"near": "silent"}, "east~(priority=4) near~ south~(priority=4) west(priority=2)"},
		"all silent":           {"near", "", "", odd{"near": "silent", "east": "silent", "west": "silent", "south": "silent"}, "east~ near(priority=64) south~ west~"},
		"saturated":            {"", "", "", odd{"west": "saturated"}, "east near south west~(priority=32)"},
		"saturated, by tier":   {"near > west", "", "", odd{"near": "saturated"}, "east~(priority=4) near~(priority=32) south~(priority=4) west(priority=2)"},
		"a border":             {"near", "", "east; near", nil, "east~(priority=2) near south west"},
		"shares":               {"", "west=10", "", nil, "east(priority=0 weight=7680) near(priority=0 weight=7680) south(priority=0 weight=7680) west~(priority=0 weight=2560)"},
		"no share":             {"", "west=0", "", nil, "east(priority=0 weight=8704) near(priority=0 weight=8704) south(priority=0 weight=8704) west~(priority=1)"},
		"all shares":           {"", "west=100", "", nil, "east~(priority=1) near~(priority=1) south~(priority=1) west(priority=0 weight=25600)"},
		"shares in tiers":      {"east; near", "west=10, near=20", "", nil, "east(priority=0 weight=20480) near~(priority=0 weight=5120) south~(priority=2 weight=23552) west~(priority=2 weight=2560)"},
		"shares, all the same": {"near; west", "near=50", "", nil, "east~(priority=2 weight=12800) near(priority=0 weight=12800) south~(priority=2 weight=12800) west(priority=0 weight=12800)"},
		"terminating":          {"near", "", "", odd{"near": "terminating", "west": "terminating"}, "east~(priority=2) near~ south~(priority=2) west~(priority=2 terminating=1)"},
		"terminating, and a share": {
			"", "near=50", "",
			odd{"near": "terminating", "west": "down", "south": "down"},
			"east(priority=0 weight=12800) near~(priority=0 weight=25600 terminating=1) south west",
		},
	} {
		t.Run(name, func(t *testing.T) {
			contributions := exporting(t, "prefer="+test.prefer+"|weights="+test.weights+"|within="+test.within,
				"east=2 near=2 west=2 south=2", test.odd, headless)
			_, result := settled(t, newObserved(), contributions)
			diff(t, "annotations", srvText(result), test.want)

			// kube-proxy does what SRV does for ClusterSetIP imports.
			for _, c := range contributions {
				c.View.Spec.Type = v1beta1.ClusterSetIP
			}
			if text := srvText(merged(newObserved(), contributions)); strings.Contains(text, "(") {
				t.Errorf("with a cluster IP: %s", text)
			}
		})
	}
}

// isDemoted reports whether an endpoint is serving and terminating, for whatever reason.
func isDemoted(endpoint discoveryv1.Endpoint) bool {
	return !isReady(&endpoint) && *endpoint.Conditions.Serving && *endpoint.Conditions.Terminating
}

// SPDX-License-Identifier: Apache-2.0

package kubeproxy

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
)

// What a test of the table does to a merge before kube-proxy sees it.
const (
	// oneWithout is the moment at which one slice has no hints yet.
	oneWithout = "one slice without hints"
	// noNodeHints is the same, of hints for nodes.
	noNodeHints = "one slice without hints for nodes"
	// local is a Service with internalTrafficPolicy: Local.
	local = "internalTrafficPolicy: Local"
	// drain demotes the endpoints of east, silence those of west.
	drain, silence = "east is drained", "west is silent"
)

// TestCategorizeEndpoints has a row for each decision that kube-proxy's CategorizeEndpoints makes of hints of ours.
// What is chosen is named as the endpoints are: e1 is the first of east, our cluster.
func TestCategorizeEndpoints(t *testing.T) {
	const nine, sameZone, sameNode = "1 2 3 4 5 6 7 8 9", "PreferSameZone", "PreferSameNode"
	for name, test := range map[string]struct {
		zones, distribution, prefer string
		east, west                  string
		from                        node
		with, want                  string
	}{
		"no preference":                        {"a b", "", "", "a b", "a b", node{"n", "a"}, "", "e1 e2 w1 w2"},
		"no endpoints":                         {"a b", "", "cluster", "", "", node{"n", "a"}, "", ""},
		"none is ready or serving":             {"a b", "", "cluster", "!a", "!a", node{"n", "a"}, "", ""},
		"none is ready, some serve":            {"a b", "", "cluster", "!a ~b", "~a", node{"n", "a"}, "", "e2 w1"},
		"cluster: at home":                     {"a b", "", "cluster", "a", "a b", node{"n", "b"}, "", "e1"},
		"cluster: only the ready ones":         {"a b", "", "cluster", "a !a ~a", "a", node{"n", "a"}, "", "e1"},
		"cluster: none is ready at home":       {"a b", "", "cluster", "!a ~b", "a b", node{"n", "a"}, "", "w1 w2"},
		"cluster: nothing at home":             {"a b", "", "cluster", "", "a b", node{"n", "a"}, "", "w1 w2"},
		"cluster: nothing abroad":              {"a b", "", "cluster", "a", "", node{"n", "b"}, "", "e1"},
		"cluster: no zone at home":             {"a b", "", "cluster", "-", "a", node{"n", "a"}, "", "e1"},
		"cluster: a node without a zone":       {"a b", "", "cluster", "a", "a", node{"n", ""}, "", "e1 w1"},
		"cluster: a node of a new zone":        {"a b", "", "cluster", "a", "a", node{"n", "c"}, "", "e1 w1"},
		"cluster: no node has a zone":          {"", "", "cluster", "a", "a", node{"n", ""}, "", "e1"},
		"cluster: nine zones":                  {nine, "", "cluster", "1", "1", node{"n", "1"}, "", "e1"},
		"cluster: eight zones":                 {nine[2:], "", "cluster", "2", "9", node{"n", "9"}, "", "e1"},
		"cluster: not all have hints yet":      {"a b", "", "cluster", "a", "a", node{"n", "a"}, oneWithout, "e1 w1"},
		"cluster: drained":                     {"a b", "", "cluster", "a", "a", node{"n", "a"}, drain, "w1"},
		"cluster: drained, nothing abroad":     {"a b", "", "cluster", "a", "", node{"n", "a"}, drain, "e1"},
		"cluster: another is silent":           {"a b", "", "cluster", "a", "a", node{"n", "a"}, silence, "e1"},
		"cluster: another is silent, ours not": {"a b", "", "cluster", "!a", "a", node{"n", "a"}, silence, "w1"},
		"cluster: Local, ready here":           {"a", "", "cluster", "a@n a@m", "a", node{"n", "a"}, local, "e1"},
		"cluster: Local, terminating here":     {"a", "", "cluster", "~a@n a@m", "a", node{"n", "a"}, local, "e1"},
		"cluster: Local, nothing here":         {"a", "", "cluster", "a@m", "a", node{"n", "a"}, local, ""},

		"zone: of both clusters":       {"a b", sameZone, "", "a b", "a b", node{"n", "a"}, "", "e1 w1"},
		"zone: by its old name":        {"a b", "PreferClose", "", "a b", "a b", node{"n", "b"}, "", "e2 w2"},
		"zone: only abroad":            {"a b", sameZone, "", "a", "b", node{"n", "b"}, "", "w1"},
		"zone: none is ready there":    {"a b", sameZone, "", "!a b", "b", node{"n", "a"}, "", "e2 w1"},
		"zone: nowhere":                {"a b c", sameZone, "", "a", "b", node{"n", "c"}, "", "e1 w1"},
		"zone: one without":            {"a b", sameZone, "", "a -", "- b", node{"n", "a"}, "", "e1"},
		"zone: none with":              {"a b", sameZone, "", "-", "-", node{"n", "a"}, "", "e1 w1"},
		"zone: nine":                   {nine, sameZone, "", "1 2", "1 9", node{"n", "9"}, "", "w2"},
		"zone: a node without a zone":  {"a b", sameZone, "", "a", "b", node{"n", ""}, "", "e1 w1"},
		"zone: not all have hints yet": {"a b", sameZone, "", "a", "b", node{"n", "a"}, oneWithout, "e1 w1"},
		"zone: silent":                 {"a b", sameZone, "", "a", "b", node{"n", "b"}, silence, "e1"},

		"node: here":                      {"a", sameNode, "", "a@n a@m", "a", node{"n", "a"}, "", "e1"},
		"node: not ready here":            {"a b", sameNode, "", "!a@n a@m b@m", "a b", node{"n", "a"}, "", "e2 w1"},
		"node: not here, nor in the zone": {"a b", sameNode, "", "a@m", "a", node{"n", "b"}, "", "e1 w1"},
		"node: one of that name abroad":   {"a", sameNode, "", "a@m", "a@n", node{"n", "a"}, "", "e1 w1"},
		"node: without a zone":            {"a", sameNode, "", "a@n a@m", "a", node{"n", ""}, "", "e1"},
		"node: no hints for nodes yet":    {"a b", sameNode, "", "a@n a@m b@o", "b", node{"n", "a"}, noNodeHints, "e1 e2"},

		"zone and cluster: zone":                  {"a b", sameZone, "cluster", "a b", "a b", node{"n", "a"}, "", "e1"},
		"zone and cluster: then cluster":          {"a b c", sameZone, "cluster", "a b", "a c", node{"n", "c"}, "", "e1 e2"},
		"zone and cluster: not ready in the zone": {"a b", sameZone, "cluster", "!a b", "a", node{"n", "a"}, "", "e2"},
		"zone and cluster: then all":              {"a b", sameZone, "cluster", "!a !b", "a b", node{"n", "a"}, "", "w1 w2"},
		"zone and cluster: nine zones":            {nine, sameZone, "cluster", "1 2", "1", node{"n", "1"}, "", "e1"},

		"node and cluster: node":         {"a", sameNode, "cluster", "a@n a@m", "a", node{"n", "a"}, "", "e1"},
		"node and cluster: then zone":    {"a b", sameNode, "cluster", "a@m b@o", "a", node{"n", "a"}, "", "e1"},
		"node and cluster: then cluster": {"a b", sameNode, "cluster", "a@m", "b", node{"n", "b"}, "", "e1"},
		"node and cluster: then all":     {"a b", sameNode, "cluster", "!a@n", "a b", node{"n", "a"}, "", "w1 w2"},
		"node and cluster: drained":      {"a b", sameNode, "cluster", "a@n b@m", "!a", node{"n", "a"}, drain, "e1"},
	} {
		t.Run(name, func(t *testing.T) {
			east, west := newView("east", 1, 80), newView("west", 2, 80)
			add(east, corev1.IPv4Protocol, test.east, 80)
			add(west, corev1.IPv4Protocol, test.west, 80)
			for i := range west.Slices[0].Endpoints {
				west.Slices[0].Endpoints[i].NodeName = nil // as a reader of another cluster has it
			}
			east.Spec.TrafficDistribution = test.distribution
			if test.prefer != "" {
				east.Spec.Annotations = map[string]string{export.AnnotationPrefer: test.prefer}
			}
			if test.with == local {
				east.Spec.InternalTrafficPolicy = corev1.ServiceInternalTrafficPolicyLocal
			}
			result := merged(t, placement.Nodes{Zones: strings.Fields(test.zones)}, "",
				[]merge.Contribution{
					{View: east, Demote: test.with == drain}, {View: west, Demote: test.with == silence},
				})
			for i := range result.EndpointSlices[0].Endpoints {
				switch test.with {
				case oneWithout:
					result.EndpointSlices[0].Endpoints[i].Hints = nil
				case noNodeHints:
					hints := result.EndpointSlices[0].Endpoints[i].Hints.DeepCopy()
					hints.ForNodes = nil
					result.EndpointSlices[0].Endpoints[i].Hints = hints
				}
			}
			var names []string
			for _, address := range chosen(t, test.from, result)[port{80, corev1.IPv4Protocol}] {
				names = append(names, strings.NewReplacer("10.1.0.", "e", "10.2.0.", "w").Replace(address))
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

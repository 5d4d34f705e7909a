// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

func prefers(value string) func(*export.View) {
	return func(view *export.View) { view.Spec.Annotations = map[string]string{export.AnnotationPrefer: value} }
}

// in puts the endpoints of a view into a zone.
func in(zone string) func(*export.View) {
	return func(view *export.View) {
		for i := range view.Slices[0].Endpoints {
			view.Slices[0].Endpoints[i].Zone = ptr.To(zone)
		}
	}
}

// TestLocality: preferences of an import of east, and their hints and condition there.
func TestLocality(t *testing.T) {
	const labelled, mixed = "a b", "a b ?"
	nine := "1 2 3 4 5 6 7 8 9"
	type changes = []func(*export.View)
	for name, test := range map[string]struct {
		oldest             changes
		zones              string // of nodes, with "?" if one has none
		operator           string
		hints              string // of east, then of west
		distribution, told string
	}{
		"the annotation":            {changes{prefers("cluster")}, labelled, "", "a,b *", "PreferClose", "True InEffect"},
		"the operator":              {nil, labelled, "cluster", "a,b *", "PreferClose", "True InEffect"},
		"both":                      {changes{distribution("PreferSameZone"), prefers("cluster")}, labelled, "", "a,b *", "PreferSameZone", "True InEffect"},
		"the zone, one not valid":   {changes{distribution("PreferSameZone"), prefers(">")}, labelled, "", "a b", "PreferSameZone", "False InvalidAnnotation"},
		"a value that is not valid": {changes{prefers("one two")}, labelled, "", "none none", "", "False InvalidAnnotation"},
		"some without a zone":       {changes{prefers("cluster")}, mixed, "", "none none", "", "True InEffect"},
		"tiers":                     {changes{prefers("local > west")}, labelled, "", "a,b *", "PreferClose", "True InEffect"},
		"too many, but a zone":      {changes{prefers("cluster"), distribution("PreferClose")}, nine, "", "a b", "PreferClose", "True InEffect"},
		"headless":                  {changes{prefers("cluster"), headless}, labelled, "", "none none", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			east := newView("east", 1, "80/TCP", "10.1.0.1", append(changes{in("a")}, test.oldest...)...)
			west := newView("west", 2, "80/TCP", "10.2.0.1", in("b"))
			west.Spec.Type = east.Spec.Type
			zones, without := strings.CutSuffix(test.zones, "?")
			observed := newObserved(strings.Fields(zones)...)
			observed.Prefer, observed.Nodes.SomeWithoutZone = test.operator, without
			observed, result := settled(t, observed, contribute(west, east))
			diff(t, "hints", hintsText(result), test.hints)
			if result.DerivedService != nil {
				diff(t, "trafficDistribution of the derived Service",
					ptr.Deref(result.DerivedService.Spec.TrafficDistribution, ""), test.distribution)
			}
			diff(t, "trafficDistribution of the import", ptr.Deref(result.ServiceImport.Spec.TrafficDistribution, ""),
				east.Spec.TrafficDistribution)
			diff(t, "condition", preferText(result), test.told)

			// The Service is replaced: the preference stays until it exists again.
			_, kept := settled(t, observed, contribute(newAbsent("east")))
			diff(t, "derived Service while the Service is replaced", kept.DerivedService, result.DerivedService)
			diff(t, "condition while the Service is replaced", preferText(kept), test.told)

			// No cluster has a preference anymore: its hints and condition are removed.
			observed.Prefer = ""
			east.Spec.TrafficDistribution, east.Spec.Annotations = "", nil
			_, result = settled(t, observed, contribute(west, east))
			diff(t, "later", strings.TrimSpace(strings.ReplaceAll(hintsText(result)+preferText(result), "none", "")), "")
		})
	}
}

// hintsText is the hints of the endpoints of east, then of west.
func hintsText(result merge.Result) string {
	var all []discoveryv1.Endpoint
	for _, slice := range slices.Concat(export.SlicesOf("east", result.EndpointSlices), export.SlicesOf("west", result.EndpointSlices)) {
		all = append(all, slice.Endpoints...)
	}
	return text(all)
}

// preferText is the status and the reason of the condition PreferCluster.
func preferText(result merge.Result) string {
	words := strings.Fields(told(result, ConditionPreferCluster))
	return strings.Join(words[:min(2, len(words))], " ")
}

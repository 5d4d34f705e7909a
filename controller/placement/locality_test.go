// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

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
		zones, operator    string
		hints              string // of east, then of west
		distribution, told string
	}{
		"nothing":                   {nil, labelled, "", "-/-", "", ""},
		"the annotation":            {changes{prefers("cluster")}, labelled, "", "a,b/elsewhere", "PreferClose", "True Hinted"},
		"the operator":              {nil, labelled, "cluster", "a,b/elsewhere", "PreferClose", "True Hinted"},
		"not this service":          {changes{prefers("none")}, labelled, "cluster", "-/-", "", ""},
		"another preference":        {changes{distribution("PreferSameZone")}, labelled, "cluster", "a/b", "PreferSameZone", ""},
		"both":                      {changes{distribution("PreferSameZone"), prefers("cluster")}, labelled, "", "a,b/elsewhere", "PreferSameZone", "True Hinted"},
		"both, and a node":          {changes{distribution("PreferSameNode"), prefers("cluster")}, labelled, "", "a,b/elsewhere", "PreferSameNode", "True Hinted"},
		"the zone, not this one":    {changes{distribution("PreferSameZone"), prefers("none")}, labelled, "cluster", "a/b", "PreferSameZone", ""},
		"the zone, one not valid":   {changes{distribution("PreferSameZone"), prefers(">")}, labelled, "", "a/b", "PreferSameZone", "False UnknownPreference"},
		"a tier with others":        {changes{prefers("local; west")}, labelled, "", "-/-", "", "True Demoted"},
		"an unknown preference":     {changes{distribution("PreferMoon")}, labelled, "", "-/-", "", ""},
		"the same, and ours":        {changes{distribution("PreferMoon"), prefers("cluster")}, labelled, "", "a,b/elsewhere", "PreferClose", "True Hinted"},
		"a value that is not valid": {changes{prefers("one two")}, labelled, "", "-/-", "", "False UnknownPreference"},
		"some without a zone":       {changes{prefers("cluster")}, mixed, "", "-/-", "", "True Demoted"},
		"all without a zone":        {changes{prefers("cluster")}, "?", "", "-/-", "", "True Demoted"},
		"no nodes":                  {changes{prefers("cluster")}, "", "", "-/-", "", "True Demoted"},
		"too many zones":            {changes{prefers("cluster")}, nine, "", "-/-", "", "True Demoted"},
		"tiers":                     {changes{prefers("local > west")}, labelled, "", "a,b/elsewhere", "PreferClose", "True Hinted"},
		"tiers, this cluster later": {changes{prefers("west > local")}, labelled, "", "-/-", "", "True Demoted"},
		"tiers of the operator":     {nil, labelled, "local > west", "a,b/elsewhere", "PreferClose", "True Hinted"},
		"headless tiers":            {changes{prefers("local > west"), headless}, labelled, "", "-/-", "", "True Demoted"},
		"too many, but a zone":      {changes{prefers("cluster"), distribution("PreferClose")}, nine, "", "a/b", "PreferClose", "True Demoted"},
		"headless":                  {changes{prefers("cluster"), headless}, labelled, "", "-/-", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			east := newView("east", 1, "80/TCP", "10.1.0.1 !10.1.0.2", append(changes{in("a")}, test.oldest...)...)
			west := newView("west", 2, "80/TCP", "10.2.0.1", in("b"))
			west.Spec.Type = east.Spec.Type
			observed := newObserved("east")
			observed.Prefer = test.operator
			for _, zone := range strings.Fields(test.zones) {
				if zone == "?" {
					observed.Nodes.SomeWithoutZone = true
					continue
				}
				observed.Nodes.Zones = append(observed.Nodes.Zones, zone)
			}
			observed, result := settled(t, observed, contribute(west, east))
			diff(t, "hints", hintsText(result, "east")+"/"+hintsText(result, "west"), test.hints)
			if result.DerivedService != nil {
				diff(t, "trafficDistribution of the derived Service",
					ptr.Deref(result.DerivedService.Spec.TrafficDistribution, ""), test.distribution)
			}
			diff(t, "trafficDistribution of the import", ptr.Deref(result.ServiceImport.Spec.TrafficDistribution, ""),
				east.Spec.TrafficDistribution)
			diff(t, "condition", preferText(result), test.told)
			checkHints(t, result.EndpointSlices)

			// The Service is replaced: until it is back the preference stays.
			replaced := observed
			replaced.Invalid = &export.Invalid{Reason: string(v1beta1.ServiceExportReasonNoService)}
			_, kept := settled(t, replaced, contribute(newAbsent("east")))
			diff(t, "derived Service while the Service is replaced", kept.DerivedService, result.DerivedService)
			diff(t, "condition while the Service is replaced", preferText(kept), test.told)

			// No cluster prefers anything anymore: nothing of it stays.
			observed.Prefer = ""
			east.Spec.TrafficDistribution, east.Spec.Annotations = "", nil
			_, result = settled(t, observed, contribute(west, east))
			diff(t, "later", hintsText(result, "east")+"/"+hintsText(result, "west")+preferText(result), "-/-")
		})
	}
}

// hintsText is the zones that the endpoints of a cluster are hinted for, which must be the same.
func hintsText(result merge.Result, cluster string) string {
	texts := map[string]bool{}
	text := ""
	for _, slice := range result.EndpointSlices {
		if slice.Labels[export.LabelSourceCluster] != cluster {
			continue
		}
		for _, endpoint := range slice.Endpoints {
			text = "-"
			if endpoint.Hints != nil {
				var zones []string
				for _, zone := range endpoint.Hints.ForZones {
					zones = append(zones, strings.TrimSuffix(zone.Name, "."+export.Domain))
				}
				text = strings.Join(zones, ",")
			}
			texts[text] = true
		}
	}
	if len(texts) != 1 {
		return fmt.Sprint(texts)
	}
	return text
}

func preferText(result merge.Result) string {
	for _, condition := range result.ServiceImport.Status.Conditions {
		if condition.Type == ConditionPreferCluster {
			return fmt.Sprintf("%s %s", condition.Status, condition.Reason)
		}
	}
	return ""
}

// checkHints checks what the API server and kube-proxy ask of hints: at most
// eight, each once, and all endpoints of the service or none.
func checkHints(t *testing.T, all []*discoveryv1.EndpointSlice) {
	t.Helper()
	with, without := 0, 0
	for _, slice := range all {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Hints == nil {
				without++
				continue
			}
			with++
			seen := map[string]bool{}
			for _, zone := range endpoint.Hints.ForZones {
				seen[zone.Name] = true
			}
			if n := len(endpoint.Hints.ForZones); n < 1 || n > MaxZones || n != len(seen) ||
				len(endpoint.Hints.ForNodes) > 1 {
				t.Errorf("hints %v", endpoint.Hints)
			}
		}
	}
	if with > 0 && without > 0 {
		t.Errorf("%d endpoints have hints and %d have none", with, without)
	}
}

// TestConditionIsOfTheImport, also while the Service is replaced.
func TestConditionIsOfTheImport(t *testing.T) {
	observed := newObserved("east")
	observed.Nodes = Nodes{Zones: []string{"a"}}
	views := contribute(newView("east", 1, "80/TCP", "10.1.0.1", prefers("cluster")))
	observed, _ = settled(t, observed, views)
	observed.Nodes.Zones = []string{"a", "b"}
	observed.Nodes.SomeWithoutZone = true
	conditions := merged(observed, views).ServiceImport.Status.Conditions
	diff(t, "reason", conditionOf(t, conditions, ConditionPreferCluster).Reason, ReasonDemoted)
	views[0].View.Spec.Annotations[export.AnnotationPrefer] = "one two"
	diff(t, "the derived Service", merged(observed, views).DerivedService.Spec.TrafficDistribution, (*string)(nil))
	observed.ServiceImport.Annotations[export.AnnotationPrefer] = "one two"
	observed.Invalid = &export.Invalid{Reason: "NoService"}
	conditions = merged(observed, contribute(newAbsent("east"))).ServiceImport.Status.Conditions
	diff(t, "reason while the Service is replaced", conditionOf(t, conditions, ConditionPreferCluster).Reason,
		ReasonUnknownPreference)
}

// TestReplacedBehindAnOlderSchema: what the schema of ServiceImports does not keep is in the derived Service all the
// same, and stays there while the Service is replaced.
func TestReplacedBehindAnOlderSchema(t *testing.T) {
	observed := newObserved("east")
	observed.Nodes = Nodes{Zones: []string{"a"}}
	observed.Prefer = PreferCluster
	view := newView("east", 1, "80/TCP", "10.1.0.1", distribution("PreferSameZone"))
	view.Spec.InternalTrafficPolicy = corev1.ServiceInternalTrafficPolicyLocal
	view.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	view.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{
		ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(int32(60))},
	}
	observed, _ = settled(t, observed, contribute(view))
	spec := &observed.ServiceImport.Spec
	spec.InternalTrafficPolicy, spec.TrafficDistribution, spec.SessionAffinityConfig, spec.IPFamilies = nil, nil, nil,
		nil
	observed.Invalid = &export.Invalid{Reason: string(v1beta1.ServiceExportReasonNoService)}
	result := merged(observed, contribute(newAbsent("east")))
	diff(t, "derived Service", result.DerivedService, observed.DerivedService)
	diff(t, "condition", preferText(result), "")

	// What somebody changed of its place comes back.
	observed.DerivedService.OwnerReferences = nil
	diff(t, "owners", len(merged(observed, contribute(newAbsent("east"))).DerivedService.OwnerReferences), 1)
}

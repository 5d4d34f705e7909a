// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"
)

// TestUnsupported: how a trafficDistribution that this cluster's API server does not know is translated. The import
// keeps it.
func TestUnsupported(t *testing.T) {
	const of134, of130 = "PreferSameZone PreferSameNode", "PreferSameZone PreferSameNode PreferClose"
	for name, test := range map[string]struct {
		distribution, prefer string
		unsupported          string // the values of trafficDistribution
		want                 string
	}{
		"all known, zone":            {"PreferSameZone", "", "", "PreferSameZone"},
		"all known, node":            {"PreferSameNode", "", "", "PreferSameNode"},
		"before 1.34, zone":          {"PreferSameZone", "", of134, "PreferClose"},
		"before 1.34, close":         {"PreferClose", "", of134, "PreferClose"},
		"before 1.34, node":          {"PreferSameNode", "", of134, ""},
		"before 1.34, node, cluster": {"PreferSameNode", "cluster", of134, "PreferClose"},
		"before 1.34, zone, cluster": {"PreferSameZone", "cluster", of134, "PreferClose"},
		"before 1.30, zone":          {"PreferSameZone", "", of130, ""},
		"before 1.30, close":         {"PreferClose", "", of130, ""},
		"before 1.30, cluster":       {"", "cluster", of130, ""},
	} {
		t.Run(name, func(t *testing.T) {
			observed := newObserved("east")
			observed.Unsupported = Unsupported{
				Distributions: strings.Fields(test.unsupported),
			}
			view := newView("east", 1, "80/TCP", "10.1.0.1", distribution(test.distribution))
			if test.prefer != "" {
				observed.Place = somewhere(0)
			}
			_, result := settled(t, observed, contribute(view))
			diff(t, "derived Service", ptr.Deref(result.DerivedService.Spec.TrafficDistribution, ""), test.want)
			diff(t, "import", ptr.Deref(result.ServiceImport.Spec.TrafficDistribution, ""), test.distribution)
		})
	}
}

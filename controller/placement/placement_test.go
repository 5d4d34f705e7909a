// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestRoles: the rules for east, west and north, as east has them.
func TestRoles(t *testing.T) {
	for name, test := range map[string]struct{ key, value, zones, want string }{
		"nothing": {"", "", "", "east: ; west: saturated; north: "},
		"tiers":   {export.AnnotationPrefer, "north > west", "", "east: tier 3; west: saturated, tier 2; north: tier 1"},
		"hints":   {export.AnnotationPrefer, "local", "a", "east: tier 1 by hints; west: saturated, tier 2; north: tier 2"},
		"border": {
			export.AnnotationWithin, "west", "",
			"east: ; west: saturated; north: outside of the border west",
		},
		"weights": {
			export.AnnotationWeights, "north=50,west=1", "",
			"east: ; west: saturated, weight 1 %; north: weight 50 %",
		},
		"the whole": {
			export.AnnotationWeights, "north=100", "",
			"east: no weight; west: saturated; north: weight 100 %",
		},
	} {
		views := contribute(newView("east", 1, "80/TCP", addresses(1, 2), asks(test.key, test.value)),
			newView("west", 2, "80/TCP", addresses(2, 3)), newView("north", 3, "80/TCP", addresses(3, 3)))
		views[1].View.Spec.Saturated = true
		observed := newObserved("east")
		observed.Nodes.Zones = strings.Fields(test.zones)
		observed, result := settled(t, observed, views)
		placement := observed.here().Of(result.ServiceImport, views)
		var all []string
		for _, cluster := range []string{"east", "west", "north"} {
			all = append(all, cluster+": "+strings.Join(placement.Rules(cluster), ", "))
		}
		diff(t, name, strings.Join(all, "; "), test.want)
	}
}

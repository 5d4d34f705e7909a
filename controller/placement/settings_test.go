// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

var clusters = []scope.Cluster{
	{ID: "east", Properties: map[string]string{"region": "eu"}},
	{ID: "near", Properties: map[string]string{"region": "eu"}},
	{ID: "west", Properties: map[string]string{"region": "us"}},
	{ID: "bare", Properties: map[string]string{}},
}

// TestTiers: the tier of each cluster, as east sees it.
func TestTiers(t *testing.T) {
	for _, test := range []struct{ text, tiers, shown string }{
		{"", "0 0 0 0", ""},
		{"none", "0 0 0 0", ""},
		{"cluster", "0 1 1 1", "local"},
		{" local ", "0 1 1 1", "local"},
		{"local > same(region) > west", "0 1 2 3", "local > same(region) > west"},
		{"west>*", "1 1 0 1", "west>*"},
		{"west; bare > local", "1 2 0 0", "west; bare > local"},
		{"region in (us, asia)", "1 1 0 1", "region in (us, asia)"},
		{"west > !region > west", "3 3 0 1", "west > !region > west"},
	} {
		tiers, err := ParseTiers(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		var all []string
		for _, cluster := range clusters {
			all = append(all, fmt.Sprint(tiers.Of(cluster, clusters[0])))
		}
		if got := strings.Join(all, " "); got != test.tiers || tiers.text != test.shown {
			t.Errorf("%q: got %s, shown as %q, want %s", test.text, got, tiers.text, test.tiers)
		}
	}
}

func TestTiersRefuse(t *testing.T) {
	for _, text := range []string{
		">", "west >", "> west", "west > > east", "one two", "same()", "east, west > north",
		strings.Repeat("west > ", maxTiers) + "west", strings.Repeat("a", 1<<16), strings.Repeat("(", 1000),
	} {
		tiers, err := ParseTiers(text)
		if err == nil || tiers.Any() || len(err.Error()) > 400 {
			t.Errorf("%.50q was parsed", text)
		}
	}
}

func FuzzTiers(f *testing.F) {
	for _, seed := range []string{"cluster", "local > same(region) > eu-1; eu-2", ">", "a in (b)>c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tiers, err := ParseTiers(text)
		if err != nil {
			return
		}
		again, err := ParseTiers(tiers.text)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, tiers.text, err)
		}
		for _, cluster := range clusters {
			if tiers.Of(cluster, clusters[0]) != again.Of(cluster, clusters[0]) {
				t.Errorf("%q became %q", text, again.text)
			}
		}
	})
}

// TestParseBorder: the clusters inside, as east sees them. Of one, the properties are unknown. Errors are bounded.
func TestParseBorder(t *testing.T) {
	clusters := append(slices.Clone(clusters), scope.Cluster{ID: "unknown"})
	for _, test := range []struct {
		text, inside string
		wrong        bool
	}{
		{"", "east near west bare unknown", false},
		{"same(region)", "east near", false},
		{"west", "east west", false},
		{"region", "east", false}, // an id that no cluster has
		{"!region", "east bare", false},
		{"region!=us", "east near bare", false},
		{"region notin (us)", "east near bare", false},
		{"unknown; !region", "east bare unknown", false},
		{"*", "east near west bare unknown", false},
		{"one two", "east", true},
		{"east, west", "east", true},
		{"region, tier; west", "east", true},
		{" ", "east", true},
		{"west;", "east", true},
		{strings.Repeat("x", 1<<16), "east", true},
		{"region=" + strings.Repeat("x", 500), "east", true},
	} {
		border, err := parseBorder(test.text)
		var inside []string
		for _, cluster := range clusters {
			if place := (&placement{Here: Here{Cluster: clusters[0]}}).place(cluster, border, of(cluster.ID)); !place.outside {
				inside = append(inside, cluster.ID)
			}
		}
		if got := strings.Join(inside, " "); got != test.inside || (err != nil) != test.wrong ||
			(border != nil) != (test.text != "") || err != nil && len(err.Error()) > 400 {
			t.Errorf("%.50q: got %s, %v, want %s", test.text, got, err, test.inside)
		}
	}
}

func of(cluster string) merge.Contribution {
	return merge.Contribution{View: &export.View{Cluster: cluster, Spec: &export.Spec{}}}
}

// TestRoles: the rules for east, west and north, as east has them.
func TestRoles(t *testing.T) {
	for name, test := range map[string]struct{ key, value, zones, want string }{
		"nothing":   {"", "", "", "east: ; west: saturated; north: "},
		"tiers":     {export.AnnotationPrefer, "north > west", "", "east: tier 3; west: saturated, tier 2; north: tier 1"},
		"hints":     {export.AnnotationPrefer, "local", "a", "east: tier 1 by hints; west: saturated, tier 2; north: tier 2"},
		"border":    {export.AnnotationWithin, "west", "", "east: ; west: saturated; north: outside of the border west"},
		"weights":   {export.AnnotationWeights, "north=50,west=1", "", "east: ; west: saturated, weight 1 %; north: weight 50 %"},
		"the whole": {export.AnnotationWeights, "north=100", "", "east: no weight; west: saturated; north: weight 100 %"},
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

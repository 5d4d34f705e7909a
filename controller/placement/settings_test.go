// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
	"testing"

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
		{"cluster", "0 1 1 1", "local"},
		{" local ", "0 1 1 1", "local"},
		{"local > same(region) > west", "0 1 2 3", "local > same(region) > west"},
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
	for _, text := range []string{
		">", "west >", "> west", "west > > east", "one two", "same()", "east, west > north",
		strings.Repeat("west > ", maxTiers) + "west", strings.Repeat("a", 1<<16), strings.Repeat("(", 1000),
	} {
		if tiers, err := ParseTiers(text); err == nil || tiers.Any() || len(err.Error()) > 400 {
			t.Errorf("%.50q was parsed", text)
		}
	}
}

// TestRoles: the rules of east for each cluster. West is overloaded.
func TestRoles(t *testing.T) {
	for name, test := range map[string]struct{ asks, zones, want string }{
		"tiers":     {"prefer=near > west", "", "east: tier 3; near: tier 1; west: overloaded, tier 2"},
		"hints":     {"prefer=local", "a", "east: tier 1 by hints; near: tier 2; west: overloaded, tier 2"},
		"allowed":   {"allowed-clusters=west", "", "east: ; near: outside of the allowed clusters west; west: overloaded"},
		"weights":   {"weights=near=50,west=1", "", "east: ; near: weight 50 %; west: overloaded, weight 1 %"},
		"the whole": {"weights=near=100", "", "east: no weight; near: weight 100 %; west: overloaded"},
	} {
		contributions := exporting(t, test.asks, "east=2 near=3 west=3", map[string]string{"west": "overloaded"})
		observed := newObserved(strings.Fields(test.zones)...)
		placement := observed.here().Of(merged(observed, contributions).ServiceImport, contributions)
		var all []string
		for _, cluster := range []string{"east", "near", "west"} {
			all = append(all, cluster+": "+strings.Join(placement.Rules(cluster), ", "))
		}
		diff(t, name, strings.Join(all, "; "), test.want)
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

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

func TestLocalFirst(t *testing.T) {
	for text, want := range map[string][2]bool{
		"": {}, "none": {}, "west": {}, "local; west": {}, "west > local": {},
		"cluster": {true, true}, "local": {true, true}, "local > west": {true, false}, "local>*": {true, false},
	} {
		tiers, err := ParseTiers(text)
		if got := [2]bool{tiers.localFirst(), tiers.onlyLocal()}; err != nil || got != want {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestTiersRefuse(t *testing.T) {
	for _, text := range []string{
		">", "west >", "> west", "west > > east", "one two", "same()", "east, west > north",
		strings.Repeat("west > ", maxTiers) + "west", strings.Repeat("a", 1<<16), strings.Repeat("(", 1000),
	} {
		tiers, err := ParseTiers(text)
		if err == nil || tiers.Any() {
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

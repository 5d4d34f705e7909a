// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// TestParseBorder: the clusters inside, as east sees them. Of one, the properties are unknown.
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
	} {
		border, err := parseBorder(test.text)
		var inside []string
		for _, cluster := range clusters {
			if place := (&placement{Here: Here{Cluster: clusters[0]}}).place(cluster, border, of(cluster.ID)); !place.outside {
				inside = append(inside, cluster.ID)
			}
		}
		if got := strings.Join(inside, " "); got != test.inside || (err != nil) != test.wrong ||
			(border != nil) != (test.text != "") {
			t.Errorf("%.50q: got %s, %v, want %s", test.text, got, err, test.inside)
		}
	}
}

func of(cluster string) merge.Contribution {
	return merge.Contribution{View: &export.View{Cluster: cluster, Spec: &export.Spec{}}}
}

// TestReasons: messages have the whole reason, and are bounded.
func TestReasons(t *testing.T) {
	for text, want := range map[string]string{
		"region=eu > us": `"region=eu > us" is no border: cluster selector, term "region=eu > us": it is neither an id ` +
			`nor a label selector: found '>', expected: ',' or 'end of string'`,
		"same(region) or west": `"same(region) or west" is no border: cluster selector, term "same(region) or west": it ` +
			`is neither an id nor a label selector: unable to parse requirement: found '(', expected: in, notin, =, ==, ` +
			`!=, gt, lt`,
		"east, west": `"east, west" is no border: cluster selector, term "east, west": it has ids separated by commas: ` +
			`separate them with ";"`,
	} {
		if _, err := parseBorder(text); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if _, err := ParseTiers("east, west > north"); err == nil || err.Error() != `"east, west > north" is no list of tiers: `+
		`cluster selector, term "east, west": it has ids separated by commas: separate them with ";"` {
		t.Error(err)
	}
	for _, text := range []string{strings.Repeat("x ", 500), "region=" + strings.Repeat("x", 500), "region in (" + strings.Repeat("*", 100)} {
		if _, err := parseBorder(text); err == nil || len(err.Error()) > 400 || strings.HasPrefix(text, "region=") && !strings.HasSuffix(err.Error(), "...") {
			t.Errorf("%d bytes: %v", len(err.Error()), err)
		}
	}
}

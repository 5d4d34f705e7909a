// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/selector"
)

// TestBorder: the clusters inside, as east sees them. Of one, the properties are unknown.
func TestBorder(t *testing.T) {
	clusters := append(slices.Clone(clusters), selector.Cluster{ID: "unknown"})
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
		{" ", "east", true},
		{"west;", "east", true},
		{strings.Repeat("x", 1<<16), "east", true},
	} {
		border, err := ParseBorder(test.text)
		var inside []string
		for _, cluster := range clusters {
			if border.Admits(cluster, clusters[0]) {
				inside = append(inside, cluster.ID)
			}
		}
		if got := strings.Join(inside, " "); got != test.inside || (err != nil) != test.wrong ||
			border.Any() != (test.text != "") {
			t.Errorf("%.50q: got %s, %v, want %s", test.text, got, err, test.inside)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"strings"
	"testing"
)

// TestBorder: the clusters inside, as east sees them.
func TestBorder(t *testing.T) {
	for _, test := range []struct {
		text, inside string
		wrong        bool
	}{
		{"", "east near west bare", false},
		{"same(region)", "east near", false},
		{"west", "east west", false},
		{"region", "east", false}, // an id that no cluster has
		{"!region", "east bare", false},
		{"*", "east near west bare", false},
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

// SPDX-License-Identifier: Apache-2.0

package locality

import (
	"strings"
	"testing"
)

func TestWishOf(t *testing.T) {
	for _, test := range []struct {
		distribution, annotation, operator string
		want                               Wish
		wrong                              bool
	}{
		{"", "", "", Wish{}, false},
		{"", "", "none", Wish{}, false},
		{"", "", "cluster", Wish{Cluster: true}, false},
		{"", "cluster", "", Wish{Cluster: true}, false},
		{"", "cluster", "none", Wish{Cluster: true}, false},
		{"", "none", "cluster", Wish{}, false},
		{"PreferClose", "", "", Wish{Zone: true}, false},
		{"PreferSameZone", "", "", Wish{Zone: true}, false},
		{"PreferSameNode", "", "", Wish{Node: true, Zone: true}, false},
		{"PreferSameZone", "", "cluster", Wish{Zone: true}, false},
		{"PreferSameZone", "none", "cluster", Wish{Zone: true}, false},
		{"PreferSameZone", "cluster", "", Wish{Zone: true, Cluster: true}, false},
		{"PreferSameNode", "cluster", "none", Wish{Node: true, Zone: true, Cluster: true}, false},
		{"PreferOther", "", "", Wish{}, false},
		{"PreferOther", "cluster", "", Wish{Cluster: true}, false},
		{"", "Cluster", "", Wish{}, true},
		{"", "Cluster", "cluster", Wish{}, true},
		{"PreferSameZone", "zone", "", Wish{Zone: true}, true},
		{"", strings.Repeat("x", 1<<16), "", Wish{}, true},
	} {
		got, err := WishOf(test.distribution, test.annotation, test.operator)
		if got != test.want || (err != nil) != test.wrong {
			t.Errorf("%q, %.20q, %q: got %+v, %v", test.distribution, test.annotation, test.operator, got, err)
		}
		if err != nil && len(err.Error()) > 200 {
			t.Errorf("the error has %d bytes", len(err.Error()))
		}
	}
}

func TestValidatePreference(t *testing.T) {
	for preference, valid := range map[string]bool{
		"": true, "none": true, "cluster": true, "zone": false,
		"Cluster": false,
	} {
		if err := ValidatePreference(preference); (err == nil) != valid {
			t.Errorf("%q: %v", preference, err)
		}
	}
}

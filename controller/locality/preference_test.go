// SPDX-License-Identifier: Apache-2.0

package locality

import (
	"strings"
	"testing"
)

func TestPreferenceOf(t *testing.T) {
	for _, test := range []struct {
		distribution, annotation, operator string
		want                               Preference
		wrong                              bool
	}{
		{"", "", "", Preference{}, false},
		{"", "", "none", Preference{}, false},
		{"", "", "cluster", Preference{Cluster: true}, false},
		{"", "cluster", "", Preference{Cluster: true}, false},
		{"", "cluster", "none", Preference{Cluster: true}, false},
		{"", "none", "cluster", Preference{}, false},
		{"PreferClose", "", "", Preference{Zone: true}, false},
		{"PreferSameZone", "", "", Preference{Zone: true}, false},
		{"PreferSameNode", "", "", Preference{Node: true, Zone: true}, false},
		{"PreferSameZone", "", "cluster", Preference{Zone: true}, false},
		{"PreferSameZone", "none", "cluster", Preference{Zone: true}, false},
		{"PreferSameZone", "cluster", "", Preference{Zone: true, Cluster: true}, false},
		{"PreferSameNode", "cluster", "none", Preference{Node: true, Zone: true, Cluster: true}, false},
		{"PreferOther", "", "", Preference{}, false},
		{"PreferOther", "cluster", "", Preference{Cluster: true}, false},
		{"", "local > west", "", Preference{Cluster: true}, false},
		{"", "west > local", "cluster", Preference{}, false},
		{"", "", "local > west", Preference{Cluster: true}, false},
		{"", "one two", "", Preference{}, true},
		{"", "one two", "cluster", Preference{}, true},
		{"PreferSameZone", ">", "", Preference{Zone: true}, true},
		{"", strings.Repeat("x", 1<<16), "", Preference{}, true},
	} {
		got, err := PreferenceOf(test.distribution, test.annotation, test.operator)
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
		"": true, "none": true, "cluster": true, "local > west": true, "local >": false, "one two": false,
	} {
		if err := ValidatePreference(preference); (err == nil) != valid {
			t.Errorf("%q: %v", preference, err)
		}
	}
}

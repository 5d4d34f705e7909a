// SPDX-License-Identifier: Apache-2.0

package selector

import (
	"strings"
	"testing"
)

var clusters = map[string]Cluster{
	"east":    {ID: "east", Properties: map[string]string{"region": "eu", "tier": "test"}},
	"west":    {ID: "west", Properties: map[string]string{"region": "us"}},
	"eu.west": {ID: "eu.west", Properties: map[string]string{"region": "eu"}},
	"bare":    {ID: "bare", Properties: map[string]string{}},
}

func TestSelects(t *testing.T) {
	for _, test := range []struct{ text, local, selected string }{
		{"west", "east", "west"},
		{"eu.west", "east", "eu.west"},
		{"west;east", "bare", "east west"},
		{" west ; region=eu ", "bare", "east eu.west west"},
		{"region in (eu, us), tier!=test", "bare", "eu.west west"},
		{"!region", "west", "bare"},
		{"*", "west", "bare east eu.west west"},
		{"local", "west", "west"},
		{"same(region)", "east", "east eu.west"},
		{"same( region )", "bare", "bare"},
		{"same(tier)", "west", "west"},
		{"nobody", "west", ""},
	} {
		parsed, err := Parse(test.text)
		if err != nil {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		var selected []string
		for _, each := range []string{"bare", "east", "eu.west", "west"} {
			if parsed.Selects(clusters[each], clusters[test.local]) {
				selected = append(selected, each)
			}
		}
		if got := strings.Join(selected, " "); got != test.selected {
			t.Errorf("%q in %s selects %q, want %q", test.text, test.local, got, test.selected)
		}
		if parsed.String() != test.text {
			t.Errorf("%q became %q", test.text, parsed)
		}
	}
	for text, want := range map[string]bool{"*": true, "west; *": true, "west": false, "": false} {
		if parsed, _ := Parse(text); parsed.All() != want {
			t.Errorf("%q selects all: %t", text, parsed.All())
		}
	}
	if (Selector{}).Selects(clusters["east"], clusters["east"]) {
		t.Error("the zero value selects a cluster")
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", ";", "west;", "region in (eu", "same()", "same(a", "=eu", strings.Repeat("a", 1025)} {
		if _, err := Parse(text); err == nil {
			t.Errorf("%q was parsed", text)
		}
	}
	for _, text := range []string{"local", "west; same(region)"} {
		if _, err := Parse(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := ParseAbsolute(text); err == nil {
			t.Errorf("%q is not absolute", text)
		}
	}
	if _, err := ParseAbsolute("west; region=eu"); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"west; region in (eu)", "same(a)", "local;*", ";", "a.b.c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse(text)
		if err != nil {
			return
		}
		for _, cluster := range clusters {
			parsed.Selects(cluster, clusters["east"])
		}
	})
}

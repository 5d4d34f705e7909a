// SPDX-License-Identifier: Apache-2.0

package scope

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
		{" west ; region=eu ", "bare", "east eu.west west"},
		{"region in (eu, us), tier!=test", "bare", "eu.west west"},
		{"!region", "west", "bare"},
		{"*", "west", "bare east eu.west west"},
		{"local", "west", "west"},
		{"same(region)", "east", "east eu.west"},
		{"same(tier)", "west", "west"},
	} {
		parsed, err := ParseSelector(test.text)
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
	for text, want := range map[string]bool{"*": true, "west; *": true, "west": false, "!region": false, "": false} {
		if parsed, _ := ParseSelector(text); parsed.Selects(Cluster{}, clusters["east"]) != want {
			t.Errorf("%q selects all: %t", text, !want)
		}
	}
	if (Selector{}).Selects(clusters["east"], clusters["east"]) {
		t.Error("the zero value selects a cluster")
	}
}

func TestParseSelectorRefuses(t *testing.T) {
	for _, text := range []string{"", ";", "west;", "region in (eu", "same()", "same(a", "=eu", strings.Repeat("a", 1025)} {
		if _, err := ParseSelector(text); err == nil {
			t.Errorf("%q was parsed", text)
		}
	}
	for _, text := range []string{"local", "west; same(region)"} {
		if _, err := ParseSelector(text); err != nil {
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

// TestLists: ids that are separated by commas are refused, because a label selector would select nothing.
func TestLists(t *testing.T) {
	const list = `: it has ids separated by commas: separate them with ";"`
	for text, want := range map[string]string{
		"east, west":                    `cluster selector, term "east, west"` + list,
		"west, *":                       `cluster selector, term "west, *"` + list,
		"same(region), west":            `cluster selector, term "same(region), west"` + list,
		"region in (eu, us), tier!=a":   "",
		"east, !west":                   "",
		"east, region=eu":               "",
		"region, example.com/gpu":       "", // no id has a slash
		"Region, Tier":                  "", // nor a capital letter
		"same(region)":                  "",
		"east,":                         `cluster selector, term "east,": it is neither an id nor a label selector: `,
		"region=eu > us":                `cluster selector, term "region=eu > us": it is neither an id nor a label selector: `,
		strings.Repeat("a,", 400) + "b": `cluster selector, term "` + strings.Repeat("a,", 31) + `a"` + list,
	} {
		_, err := ParseSelector(text)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%.50q: got %q, want %q", text, got, want)
		}
	}
}

func FuzzParseSelector(f *testing.F) {
	for _, seed := range []string{"west; region in (eu)", "same(a)", "local;*", ";", "a.b.c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseSelector(text)
		if err != nil {
			return
		}
		for _, cluster := range clusters {
			parsed.Selects(cluster, clusters["east"])
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package properties

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestEncode(t *testing.T) {
	long := strings.Repeat("x", MaxBytes)
	exact := strings.Repeat("x", MaxBytes-len(`{"a":""}`))
	for name, test := range map[string]struct {
		all     map[string]string
		text    string
		omitted []string
	}{
		"none":      {nil, None, nil},
		"some":      {map[string]string{"b": "2", "a": `"1"`}, `{"a":"\"1\"","b":"2"}`, nil},
		"empty":     {map[string]string{"a": ""}, `{"a":""}`, nil},
		"long":      {map[string]string{"a": long, "b": "2"}, `{"b":"2"}`, []string{"a"}},
		"only long": {map[string]string{"a": long}, None, []string{"a"}},
		"full":      {map[string]string{"a": exact}, `{"a":"` + exact + `"}`, nil},
		"one over":  {map[string]string{"a": exact, "b": ""}, `{"a":"` + exact + `"}`, []string{"b"}},
		"set first": {map[string]string{"a": exact, ClusterSet: "blue"}, `{"clusterset.k8s.io":"blue"}`, []string{"a"}},
		"id first": {
			map[string]string{"a": exact, ClusterID: "east", ClusterSet: "blue"},
			`{"cluster.clusterset.k8s.io":"east","clusterset.k8s.io":"blue"}`,
			[]string{"a"},
		},
		"set of all": {map[string]string{"a": "1", "b": "2", ClusterSet: "s"}, `{"a":"1","b":"2","clusterset.k8s.io":"s"}`, nil},
	} {
		text, omitted := Encode(test.all)
		if text != test.text || !slices.Equal(omitted, test.omitted) {
			t.Errorf("%s: got %.100q without %q, want %.100q without %q", name, text, omitted, test.text, test.omitted)
		}
		parsed, err := Parse(text)
		if err != nil || parsed == nil || len(parsed)+len(omitted) != len(test.all) {
			t.Errorf("%s: parsed as %v: %v", name, parsed, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"x", "[]", "null", `{"a":1}`, `{"a":"b"`, strings.Repeat(" ", MaxBytes+1)} {
		if parsed, err := Parse(text); err == nil {
			t.Errorf("%.20q was parsed: %v", text, parsed)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", `{"region":"eu","tier":"\u003c"}`, `{"a":null}`, `{"a":1}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := Parse(text)
		if err != nil {
			return
		}
		again, omitted := Encode(parsed)
		if len(again) > MaxBytes {
			t.Errorf("%q became %d bytes", text, len(again))
		}
		for _, name := range omitted {
			delete(parsed, name) // an escaped character can take more bytes than before
		}
		if back, err := Parse(again); err != nil || !maps.Equal(back, parsed) {
			t.Errorf("%q became %q: %v", text, again, err)
		}
	})
}

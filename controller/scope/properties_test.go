// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestEncodeProperties(t *testing.T) {
	long := strings.Repeat("x", MaxBytes)
	exact := strings.Repeat("x", MaxBytes-len(`{"a":""}`))
	for name, test := range map[string]struct {
		all     map[string]string
		text    string
		omitted []string
	}{
		"none":     {nil, "{}", nil},
		"long":     {map[string]string{"a": long, "b": "2"}, `{"b":"2"}`, []string{"a"}},
		"full":     {map[string]string{"a": exact}, `{"a":"` + exact + `"}`, nil},
		"one over": {map[string]string{"a": exact, "b": ""}, `{"a":"` + exact + `"}`, []string{"b"}},
		"id first": {
			map[string]string{"a": exact, ClusterIDProperty: "east", ClusterSetProperty: "blue"},
			`{"cluster.clusterset.k8s.io":"east","clusterset.k8s.io":"blue"}`,
			[]string{"a"},
		},
	} {
		text, omitted := EncodeProperties(test.all)
		if text != test.text || !slices.Equal(omitted, test.omitted) {
			t.Errorf("%s: got %.100q without %q, want %.100q without %q", name, text, omitted, test.text, test.omitted)
		}
		parsed, err := ParseProperties(text)
		if err != nil || parsed == nil || len(parsed)+len(omitted) != len(test.all) {
			t.Errorf("%s: parsed as %v: %v", name, parsed, err)
		}
	}
}

func TestParsePropertiesRefuses(t *testing.T) {
	for _, text := range []string{"x", "[]", "null", `{"a":1}`, `{"a":"b"`, strings.Repeat(" ", MaxBytes+1)} {
		if parsed, err := ParseProperties(text); err == nil {
			t.Errorf("%.20q was parsed: %v", text, parsed)
		}
	}
}

func FuzzParseProperties(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", `{"region":"eu","tier":"\u003c"}`, `{"a":null}`, `{"a":1}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := ParseProperties(text)
		if err != nil {
			return
		}
		again, omitted := EncodeProperties(parsed)
		if len(again) > MaxBytes {
			t.Errorf("%q became %d bytes", text, len(again))
		}
		for _, name := range omitted {
			delete(parsed, name) // an escaped character can take more bytes than before
		}
		if back, err := ParseProperties(again); err != nil || !maps.Equal(back, parsed) {
			t.Errorf("%q became %q: %v", text, again, err)
		}
	})
}

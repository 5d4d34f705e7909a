// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"maps"
	"strings"
	"testing"
)

func TestEncodeProperties(t *testing.T) {
	long := strings.Repeat("x", MaxBytes)
	exact := strings.Repeat("x", MaxBytes-len(`{"a":""}`))
	for name, test := range map[string]struct {
		all      map[string]string
		text     string
		complete bool
	}{
		"none":      {map[string]string{}, "{}", true},
		"full":      {map[string]string{"a": exact}, `{"a":"` + exact + `"}`, true},
		"one over":  {map[string]string{"a": exact, "b": ""}, "{}", false},
		"id":        {map[string]string{"a": exact, ClusterIDProperty: "east"}, `{"cluster.clusterset.k8s.io":"east"}`, false},
		"a long id": {map[string]string{ClusterIDProperty: long}, "{}", false},
	} {
		text, complete := EncodeProperties(test.all)
		if text != test.text || complete != test.complete {
			t.Errorf("%s: got %.100q, %t, want %.100q", name, text, complete, test.text)
		}
		if parsed, err := ParseProperties(text); err != nil || parsed == nil || complete != maps.Equal(parsed, test.all) {
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
		if parsed == nil || err != nil {
			return
		}
		again, complete := EncodeProperties(parsed)
		back, err := ParseProperties(again) // an escaped character can take more bytes than before
		if err != nil || len(again) > MaxBytes || complete && !maps.Equal(back, parsed) {
			t.Errorf("%q became %q: %v", text, again, err)
		}
	})
}

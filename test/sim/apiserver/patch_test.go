// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"testing"
)

// TestMergePatch has examples of RFC 7396, appendix A.
func TestMergePatch(t *testing.T) {
	for _, test := range []struct{ value, patch, want string }{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"a":"b"}`, `{"a":{"b":null}}`, `{"a":{}}`},
	} {
		var value, patch map[string]any
		for text, into := range map[string]*map[string]any{test.value: &value, test.patch: &patch} {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		mergePatch(value, patch)
		if got, _ := json.Marshal(value); string(got) != test.want {
			t.Errorf("%s patched with %s is %s, want %s", test.value, test.patch, got, test.want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package state

import (
	"encoding/json"
	"testing"
)

// TestEscapedTextIsJSON: texts of a member must not make JSON output invalid.
func TestEscapedTextIsJSON(t *testing.T) {
	encoded, err := json.Marshal("\u007f \U000e0001 \u001b[2J ü")
	if err != nil {
		t.Fatal(err)
	}
	var read string
	if err := json.Unmarshal([]byte(Escape(string(encoded))), &read); err != nil || read != "\u007f \U000e0001 \u001b[2J ü" {
		t.Errorf("%q from %s: %v", read, Escape(string(encoded)), err)
	}
}

// TestCleanChangesNoSharedSlice: slices in a cache have other readers.
func TestCleanChangesNoSharedSlice(t *testing.T) {
	shared := []string{"\u001b"}
	document := Cluster{Imports: []Import{{IPs: shared}}, Findings: []Finding{}}
	Clean(&document)
	if shared[0] != "\u001b" || document.Imports[0].IPs[0] != `\u001b` || document.Findings == nil || document.Members != nil {
		t.Errorf("%q, %+v", shared, document)
	}
}

// TestWithoutLogin: the status must not show passwords.
func TestWithoutLogin(t *testing.T) {
	for address, want := range map[string]string{
		"http://user:password@192.0.2.1:80": "http://192.0.2.1:80", "https://token@a/b": "https://a/b", "https://a/b": "https://a/b",
	} {
		if got := WithoutLogin(address); got != want {
			t.Errorf("%s: got %s", address, got)
		}
	}
}

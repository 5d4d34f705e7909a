// SPDX-License-Identifier: Apache-2.0

package state

import "testing"

// TestCleanChangesNoSharedSlice: slices in a cache have other readers.
func TestCleanChangesNoSharedSlice(t *testing.T) {
	shared := []string{"\u001b"}
	document := Cluster{Imports: []Import{{IPs: shared}}, Findings: []Finding{}}
	Clean(&document)
	if shared[0] != "\u001b" || document.Imports[0].IPs[0] != "\ufffd" || document.Findings == nil || document.Members != nil {
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

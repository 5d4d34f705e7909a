// SPDX-License-Identifier: Apache-2.0

package command

import "testing"

func TestVersionOf(t *testing.T) {
	if got := versionOf("v1.0.0"); got != "v1.0.0" {
		t.Errorf("set by the linker: %q", got)
	}
	if versionOf("") == "" {
		t.Error("not set: it is empty")
	}
}

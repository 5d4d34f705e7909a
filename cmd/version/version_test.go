// SPDX-License-Identifier: Apache-2.0

package version

import "testing"

func TestOf(t *testing.T) {
	if got := Of("v1.0.0"); got != "v1.0.0" {
		t.Errorf("set by the linker: %q", got)
	}
	if Of("") == "" {
		t.Error("not set: it is empty")
	}
}

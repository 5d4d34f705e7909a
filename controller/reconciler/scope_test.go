// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"strings"
	"testing"
)

func TestNamed(t *testing.T) {
	if got := named([]string{"a", "b"}); got != "a, b" {
		t.Error(got)
	}
	if got := named(strings.Split(strings.Repeat("a", 25), "")); !strings.HasSuffix(got, "a, a and 5 more") {
		t.Error(got)
	}
}

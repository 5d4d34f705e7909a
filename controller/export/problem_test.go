// SPDX-License-Identifier: Apache-2.0

package export

import (
	"slices"
	"strings"
	"testing"
)

func TestListed(t *testing.T) {
	texts := strings.Split("abcdefghijkl", "")
	before := slices.Clone(texts)
	for count, want := range map[int]string{10: "a, b, c, d, e, f, g, h, i, j", 12: "a, b, c, d, e, f, g, h, i, j, 2 more"} {
		if got := Listed(texts[:count]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !slices.Equal(texts, before) {
		t.Errorf("the texts became %q", texts)
	}
}

// SPDX-License-Identifier: Apache-2.0

package member

import (
	"strings"
	"testing"
)

func TestParseRank(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "7": 7, "1000": 1000, "-1000": -1000, "": LastRank, "1001": LastRank, "-1001": LastRank, "1O": LastRank,
	} {
		rank, err := ParseRank(map[string]string{RankAnnotation: text})
		if rank != want || (err != nil) != (want == LastRank) {
			t.Errorf("%q: %d, %v", text, rank, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "annotation clusterset-dns.github.io/rank: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if rank, err := ParseRank(map[string]string{"other": "7"}); rank != 0 || err != nil {
		t.Errorf("without the annotation: %d, %v", rank, err)
	}
}

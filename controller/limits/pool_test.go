// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"strconv"
	"strings"
	"testing"
)

// TestRoom: half of a pool is reserved in equal parts, at least eight, and the other half is lent.
func TestRoom(t *testing.T) {
	amounts := func(text string) map[string]int {
		all := map[string]int{}
		for word := range strings.FieldsSeq(text) {
			member, amount, _ := strings.Cut(word, "=")
			all[member], _ = strconv.Atoi(amount)
		}
		return all
	}
	for name, test := range map[string]struct {
		total               int
		members, held, want string // want: the room of members
	}{
		"nobody holds anything":                      {160, "a b", "", "a=90 b=90"},
		"one took all that is lent":                  {160, "a b", "a=90", "a=90 b=10"},
		"one beyond its part uses what is lent":      {160, "a b", "b=13", "a=87 b=90"},
		"ten members have a smaller part each":       {200, "a b c d e f g h i j", "a=110", "a=110 b=10 j=10"},
		"a total that shrank takes nothing":          {16, "a b", "a=90", "a=90 b=0"},
		"a cluster that left keeps, and has no part": {160, "b", "a=90", "a=90 b=10 c=0"},
		"an empty pool":                              {0, "a", "", "a=0"},
	} {
		for range 2 {
			b := NewPool(test.total)
			// The order of the two does not matter.
			hold := func() {
				for member, amount := range amounts(test.held) {
					b.Hold(member, amount+5)
					b.Hold(member, amount)
				}
			}
			hold()
			b.SetMembers([]string{"left"})
			b.SetMembers(strings.Fields(test.members))
			hold()
			for member, want := range amounts(test.want) {
				if got := b.room(member); got != want {
					t.Errorf("%s: room of %s is %d, want %d", name, member, got, want)
				}
			}
		}
	}
}

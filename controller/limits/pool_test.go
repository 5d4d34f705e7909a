// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"math/rand/v2"
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

// TestNobodyStarves: whatever members ask for and give back, in whatever order, together they never hold more than the
// total, and each gets its guaranteed part.
func TestNobodyStarves(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		count, total := 1+random.IntN(20), random.IntN(1000)
		members := make([]string, count)
		for i := range members {
			members[i] = fmt.Sprint("m", i)
		}
		b := NewPool(total)
		b.SetMembers(members)
		for range 200 {
			member := members[random.IntN(count)]
			before := b.held[member]
			room := b.room(member)
			if room < before {
				t.Fatalf("seed %d: %s holds %d, and has room for %d", seed, member, before, room)
			}
			switch random.IntN(3) {
			case 0:
				b.Hold(member, random.IntN(before+1)) // gives some back
			case 1:
				b.Hold(member, room)
			default:
				b.Hold(member, min(room, before+random.IntN(20)))
			}
			sum := 0
			for _, each := range members {
				sum += b.held[each]
				if guaranteed := total / 2 / max(8, count); b.room(each) < guaranteed {
					t.Fatalf("seed %d: the room of %s is %d, below %d", seed, each, b.room(each), guaranteed)
				}
			}
			if sum > total {
				t.Fatalf("seed %d: the members hold %d of %d", seed, sum, total)
			}
		}
	}
}

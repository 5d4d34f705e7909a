// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func named(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "demo", Name: fmt.Sprintf("s%05d", i)}
}

// TestOneMemberDoesNotTakeAll: a member with 20,000 services gets a bounded part
// of them, and the other members get all of theirs, in any order.
func TestOneMemberDoesNotTakeAll(t *testing.T) {
	c := NewClaims(2047) // half of a /20
	c.SetMembers([]string{"honest", "hostile"})
	admitted := 0
	for i := range 20_000 {
		if c.Admit(named(i), []string{"hostile"}, false) {
			admitted++
		}
	}
	if want := 2047 - 7*(2047/16); admitted != want {
		t.Errorf("%d services of one member were admitted, want %d", admitted, want)
	}
	for i := range 100 {
		if !c.Admit(types.NamespacedName{Namespace: "honest", Name: fmt.Sprint(i)}, []string{"honest"}, false) {
			t.Fatalf("service %d of another member was refused", i)
		}
	}
	if first, any := c.Refused("hostile"); !any || first != named(admitted) {
		t.Errorf("%v is the first that is refused, want %v", first, named(admitted))
	}
	if first, any := c.Refused("honest"); any {
		t.Errorf("%v of the other member is refused", first)
	}
}

// TestClaimsStay: what is admitted stays so when the member that pays changes,
// and what exists is admitted whatever the total.
func TestClaimsStay(t *testing.T) {
	c := NewClaims(16)
	c.SetMembers([]string{"a", "b", "c"})
	for i := range 9 {
		if !c.Admit(named(i), []string{"a"}, false) {
			t.Fatalf("service %d was refused", i)
		}
	}
	if c.Admit(named(9), []string{"a"}, false) {
		t.Error("a took what is guaranteed to others")
	}
	if !c.Admit(named(10), []string{"a", "b"}, false) || c.budget.Held("b") != 1 {
		t.Error("b does not pay for what it wants with a")
	}
	if c.Admit(named(11), []string{"b"}, false) {
		t.Error("b got more than is left")
	}
	// b withdraws, and a has no room: the service stays, and a pays.
	if !c.Admit(named(10), []string{"a"}, false) || c.budget.Held("a") != 10 || c.budget.Held("b") != 0 {
		t.Errorf("a holds %d, b %d", c.budget.Held("a"), c.budget.Held("b"))
	}
	if next, any := c.Next(); !any || next != named(11) {
		t.Errorf("next is %v, want that of b", next)
	}
	for i := 20; i < 40; i++ {
		if !c.Admit(named(i), []string{"c"}, true) {
			t.Fatalf("service %d exists and was refused", i)
		}
	}
	if next, any := c.Next(); any {
		t.Errorf("%v has room where there is none", next)
	}
	for i := 20; i < 40; i++ {
		c.Release(named(i))
	}
	c.Release(named(9)) // refused, and no longer wanted
	if first, any := c.Refused("a"); any {
		t.Errorf("%v is still refused", first)
	}
	if len(c.refused) != 1 || len(c.charged) != 10 || c.budget.sum != 10 {
		t.Errorf("refused %v, charged %v, sum %d", c.refused, c.charged, c.budget.sum)
	}
}

// TestARestartChangesNothing: services that exist are admitted first, in any
// order, and what was refused before stays refused.
func TestARestartChangesNothing(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 2))
		total, members := 10+random.IntN(200), []string{"a", "b", "c"}
		wanted := map[types.NamespacedName][]string{}
		var all []types.NamespacedName
		for i := range 300 {
			wanted[named(i)] = []string{members[random.IntN(2)]} // c wants nothing yet
			all = append(all, named(i))
		}
		first := NewClaims(total)
		first.SetMembers(members)
		exists := map[types.NamespacedName]bool{}
		for _, i := range random.Perm(len(all)) {
			exists[all[i]] = first.Admit(all[i], wanted[all[i]], false)
		}
		for range 3 {
			again := NewClaims(total)
			again.SetMembers(members)
			for _, i := range random.Perm(len(all)) {
				if exists[all[i]] && !again.Admit(all[i], wanted[all[i]], true) {
					t.Fatalf("seed %d: %v exists and was refused", seed, all[i])
				}
			}
			for _, i := range random.Perm(len(all)) {
				if got := again.Admit(all[i], wanted[all[i]], false); got != exists[all[i]] {
					t.Fatalf("seed %d: %v is admitted: %t, before the restart: %t", seed, all[i], got, exists[all[i]])
				}
			}
		}
	}
}

// TestRoomIsNeverForgotten: after any changes, with each service that Next names looked at again, no refused service
// has room, and nothing that is admitted was lost.
func TestRoomIsNeverForgotten(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		members := []string{"a", "b", "c", "d"}
		c := NewClaims(20 + random.IntN(40))
		c.SetMembers(members)
		wanted := map[types.NamespacedName][]string{}
		for range 400 {
			service := named(random.IntN(80))
			before := len(wanted[service]) > 0 && c.charged[service] != ""
			wanted[service] = nil
			for _, member := range members {
				if random.IntN(4) == 0 {
					wanted[service] = append(wanted[service], member)
				}
			}
			if len(wanted[service]) == 0 {
				c.Release(service)
			} else if admitted := c.Admit(service, wanted[service], false); before && !admitted {
				t.Fatalf("seed %d: %v lost its place", seed, service)
			}
			for next, any := c.Next(); any; next, any = c.Next() {
				if !c.Admit(next, wanted[next], false) {
					t.Fatalf("seed %d: Next names %v, which has no room", seed, next)
				}
			}
			sum := map[string]int{}
			for service, member := range c.charged {
				sum[member]++
				if !slices.Contains(wanted[service], member) {
					t.Fatalf("seed %d: %s pays for %v, which it does not want", seed, member, service)
				}
			}
			for _, member := range members {
				if sum[member] != c.budget.Held(member) {
					t.Fatalf("seed %d: %s holds %d, and pays for %d", seed, member, c.budget.Held(member), sum[member])
				}
			}
			for service, wanted := range wanted {
				if len(wanted) > 0 && (c.charged[service] == "") != (c.refused[service] != nil) {
					t.Fatalf("seed %d: %v is charged to %q and refused to %v", seed, service, c.charged[service],
						c.refused[service])
				}
			}
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func named(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: "demo", Name: fmt.Sprintf("s%05d", i)}
}

// TestIPsStay: what is admitted stays so when the member that pays changes, and what exists is admitted whatever the
// total.
func TestIPsStay(t *testing.T) {
	ips := NewIPs(16)
	ips.SetMembers([]string{"a", "b", "c"})
	for i := range 9 {
		if !ips.Admit(named(i), []string{"a"}, false) {
			t.Fatalf("service %d was refused", i)
		}
	}
	if ips.Admit(named(9), []string{"a"}, false) {
		t.Error("a took what is reserved for others")
	}
	if !ips.Admit(named(10), []string{"a", "b"}, false) || ips.held["b"] != 1 {
		t.Error("b does not pay for what it wants with a")
	}
	if ips.Admit(named(11), []string{"b"}, false) {
		t.Error("b got more than is left")
	}
	// b withdraws, and a has no room: the service stays, and a pays.
	if !ips.Admit(named(10), []string{"a"}, false) || ips.held["a"] != 10 || ips.held["b"] != 0 {
		t.Errorf("a holds %d, b %d", ips.held["a"], ips.held["b"])
	}
	if !ips.Admit(named(11), []string{"b"}, false) {
		t.Error("b does not get what it gave back")
	}
	for i := 20; i < 40; i++ {
		if !ips.Admit(named(i), []string{"c"}, true) {
			t.Fatalf("service %d exists and was refused", i)
		}
	}
	for i := 20; i < 40; i++ {
		ips.Admit(named(i), nil, false)
	}
	ips.Admit(named(9), nil, false) // refused, and no longer wanted
	if used, _ := ips.Use(); len(ips.charged) != 11 || used != 11 {
		t.Errorf("charged %v, used %d", ips.charged, used)
	}
}

// TestARestartChangesNothing: imports that exist are admitted first, in any order, and what was refused before stays
// refused.
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
		first := NewIPs(total)
		first.SetMembers(members)
		exists := map[types.NamespacedName]bool{}
		for _, i := range random.Perm(len(all)) {
			exists[all[i]] = first.Admit(all[i], wanted[all[i]], false)
		}
		for range 3 {
			again := NewIPs(total)
			for _, i := range random.Perm(len(all)) {
				if exists[all[i]] && !again.Admit(all[i], wanted[all[i]], true) {
					t.Fatalf("seed %d: %v exists and was refused", seed, all[i])
				}
			}
			again.SetMembers(members) // also if the imports are known first
			for _, i := range random.Perm(len(all)) {
				if again.Admit(all[i], wanted[all[i]], exists[all[i]]) != exists[all[i]] {
					t.Fatalf("seed %d: %v is admitted or refused anew", seed, all[i])
				}
			}
		}
	}
}

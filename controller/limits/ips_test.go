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

// TestIPsStay: an admitted import stays admitted when another member is charged, and existing imports exceed any total.
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
	// b withdraws, and a has no room: the service stays, charged to a.
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

// TestNobodyStarves: in any order of requests and withdrawals, members together never get more than the total, and each
// can get its reserved part. After a restart, existing imports are admitted in any order, and refused ones stay refused.
func TestNobodyStarves(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		total, members := random.IntN(200), []string{}
		for i := range 1 + random.IntN(20) {
			members = append(members, fmt.Sprint("m", i))
		}
		ips := NewIPs(total)
		ips.SetMembers(members)
		wanted, exists := map[types.NamespacedName][]string{}, map[types.NamespacedName]bool{}
		for range 600 {
			service, member := named(random.IntN(300)), members[random.IntN(len(members))]
			before := ips.held[member]
			switch {
			case exists[service] && random.IntN(3) == 0:
				ips.Admit(service, nil, false)
				delete(exists, service)
				delete(wanted, service)
			case wanted[service] == nil:
				wanted[service] = []string{member}
				exists[service] = ips.Admit(service, wanted[service], false)
				if guaranteed := total / 2 / max(8, len(members)); before < guaranteed && !exists[service] {
					t.Fatalf("seed %d: %s holds %d and gets no more, below %d", seed, member, before, guaranteed)
				}
			}
			if used, _ := ips.Use(); used > total {
				t.Fatalf("seed %d: the members hold %d of %d", seed, used, total)
			}
		}
		for name, of := range wanted { // what was given back meanwhile is taken
			exists[name] = ips.Admit(name, of, exists[name])
		}
		again := NewIPs(total)
		for _, admitExisting := range []bool{true, false} {
			for name, of := range wanted { // in any order
				if exists[name] || !admitExisting {
					if got := again.Admit(name, of, exists[name]); got != exists[name] {
						t.Fatalf("seed %d: %s is admitted anew: %t", seed, name, got)
					}
				}
			}
			again.SetMembers(members) // even if the imports are known first
		}
	}
}

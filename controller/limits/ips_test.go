// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

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
			service, member := types.NamespacedName{Namespace: "demo", Name: fmt.Sprint("s", random.IntN(300))}, members[random.IntN(len(members))]
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
			maps.DeleteFunc(exists, func(_ types.NamespacedName, is bool) bool { return !is })
			if used, _ := ips.Use(); used > total || used != len(exists) {
				t.Fatalf("seed %d: the members hold %d of %d for %d imports", seed, used, total, len(exists))
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

// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/placement"
)

// TestShares: the oracle and the controller, which share no code, understand the rules in the same way.
func TestShares(t *testing.T) {
	names := []string{"c1", "c2", "c3", "c4"}
	for seed := range uint64(20000) {
		random := rand.New(rand.NewPCG(seed, 0))
		weights, ready := map[string]int{}, map[string]int{}
		for _, name := range names {
			if random.IntN(2) == 0 {
				weights[name] = []int{random.IntN(101), random.IntN(30), 0, 50}[random.IntN(4)]
			}
			if random.IntN(4) > 0 {
				ready[name] = 1 + random.IntN(12)
			}
		}
		if len(weights) == 0 || len(ready) == 0 {
			continue
		}
		want := placement.Weights(weights).Used(ready)
		maps.DeleteFunc(want, func(_ string, n int) bool { return n == 0 })
		if len(want) == 0 {
			want = ready
		}
		if got := shares(weights, ready); !maps.Equal(got, want) {
			t.Fatalf("%v of %v: the oracle wants %v, the controller uses %v", weights, ready, got, want)
		}
	}
}

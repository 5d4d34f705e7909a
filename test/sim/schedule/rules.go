// SPDX-License-Identifier: Apache-2.0

package schedule

import "math"

// inUse returns how many endpoints of each cluster a reader uses.
func inUse(reader string, limits limits, all map[string]placed) map[string]int {
	// A level is the better the lower: what is saturated comes last, whatever its tier.
	best := math.MaxInt
	level := func(name string) int {
		level := limits.tier(name)
		if all[name].saturated {
			level += 100
		}
		return level
	}
	for name, each := range all {
		if each.ready() > 0 && limits.admits(reader, name) {
			best = min(best, level(name))
		}
	}
	ready := map[string]int{}
	for name, each := range all {
		if each.ready() > 0 && limits.admits(reader, name) && level(name) == best {
			ready[name] = each.ready()
		}
	}
	return shares(weighings[all[reader].weights].says, ready)
}

// shares returns how many of the ready endpoints of clusters are in use with weights.
func shares(weights, ready map[string]int) map[string]int {
	total, present, rest := 0, 0, 0
	for name, weight := range weights {
		total += weight
		if ready[name] > 0 {
			present += weight
		}
	}
	for name, n := range ready {
		if _, weighted := weights[name]; !weighted {
			rest += n
		}
	}
	// exactly is how many endpoints a weight should have.
	exactly := func(weight int) float64 { return float64(weight*rest) / float64(100-present) }
	if total >= 100 || rest == 0 {
		exactly = func(weight int) float64 {
			least := math.Inf(1)
			for name, n := range ready {
				if other := weights[name]; other > 0 {
					least = min(least, float64(weight*n)/float64(other))
				}
			}
			return least
		}
	}
	used := map[string]int{}
	for name, n := range ready {
		switch weight, weighted := weights[name]; {
		case !weighted && (total < 100 || weights == nil):
			used[name] = n
		case weight > 0:
			used[name] = min(max(int(math.Round(exactly(weight))), 1), n)
		}
	}
	if len(used) == 0 {
		return ready // nothing else is there
	}
	return used
}

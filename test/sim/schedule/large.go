// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle/judge"
)

const (
	// small is how many clusters New has at most.
	small = 8
	// tenth is how many clusters fall silent together.
	tenth = 10
	// away is how long they are: longer than a member may be silent before it is demoted.
	away = 65 * time.Second
)

// silences are how a cluster falls silent for all others.
var silences = []string{
	"the controller is down", "the controller is killed", "the API server is killed", "the API server is frozen",
}

// Large returns the schedule of a seed for a large set, in which many clusters fall silent and return at once:
//
//	  0 s  random operations for 170 s, and for 25 s short faults
//	 35 s  ten clusters fall silent, each in its own way; for one more, all others do
//	 60 s  the controller of another cluster is killed, and starts again
//	105 s  the set falls into two parts, of which one has an eighth of the clusters
//	175 s  all API servers end their watches
//
// Nothing else happens to most ways for long before clusters are silent: only then must others cover for them (demoted).
func Large(seed uint64, clusters int) Schedule {
	random := rand.New(rand.NewPCG(seed, 5))
	s := Schedule{Seed: seed, Clusters: clusters}
	for range clusters / 4 {
		s.draw(random, 20*time.Second, 5*time.Second)
	}
	add := func(at time.Duration, kind string, lasts time.Duration, cluster, other int) {
		s.Events = append(s.Events, Event{
			At: at, Kind: kind, Lasts: lasts, Cluster: cluster, Other: other, Random: random.Uint64(),
		})
	}
	for range clusters {
		add(time.Duration(random.Int64N(int64(170*time.Second))), operation, 0, random.IntN(clusters), 0)
	}
	order := random.Perm(clusters)
	wave := min(tenth, clusters/4)
	for _, cluster := range order[:wave] {
		add(35*time.Second, silences[random.IntN(len(silences))], away, cluster, 0)
	}
	add(35*time.Second, "cut off from all", away, order[wave], 0)
	add(60*time.Second, "the controller is killed", time.Second, order[wave+1], 0)
	add(105*time.Second, partition, away, 0, clusters/8-1)
	for cluster := range clusters {
		add(175*time.Second, "the API server restarts", 0, cluster, 0)
	}
	s.sort()
	return s
}

// services returns the names that the cluster of a number has: shared ones and its own. In a large set all clusters
// share one and eight of them another: each export is copied into all clusters.
func (s Schedule) services(number int) []string {
	if s.Clusters <= small {
		return []string{"own-" + s.names()[number], "a", "b", "c", "d"}
	}
	return []string{"a", fmt.Sprintf("b-%d", number/small)}
}

// pace returns how often all that clients see is judged, how long nothing is to be written in the end, and whether all
// controllers restart then. A large set costs more for each: a restart connects each cluster to each other anew.
func (s Schedule) pace() (lookEvery, calm time.Duration, restart bool) {
	if s.Clusters > small {
		return 3 * time.Second, 30 * time.Second, false
	}
	return time.Second, 90 * time.Second, true
}

// acrossParts are the ways between the clusters from the one up to the other and the rest.
func acrossParts(h *happening) (ways []judge.Way) {
	inside := func(number int) bool { return h.Cluster <= number && number <= h.Other }
	for from := range h.run.clusters {
		for to := range h.run.clusters {
			if inside(from) != inside(to) {
				ways = append(ways, judge.Way{From: h.run.names[from], To: h.run.names[to]})
			}
		}
	}
	return ways
}

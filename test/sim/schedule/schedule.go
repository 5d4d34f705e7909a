// SPDX-License-Identifier: Apache-2.0

// Package schedule runs random schedules of operations and faults on simulated
// cluster sets, and holds what clients see against what was exported.
//
// A schedule is made from a seed alone (New). Run carries it out, and asserts while it does and afterwards:
//
//   - no answer, and no copy, that was never right, or not for long (oracle.Judge);
//   - no healthy endpoint is lost: those of a cluster in reach arrive, those of a
//     silent cluster stay, and get no traffic if another cluster has the service;
//   - no cluster gets what is not for it, and nothing outside of a border is used or answered (placed.go);
//   - endpoints are used in one order, for all clusters at any moment, and once all is whole they are those that tiers,
//     weights and saturation have (placed.go);
//   - all clusters have what the exports come to once all is whole (oracle.Judge.Check);
//   - in every third schedule: a cluster sees pods of its own network, and the nodes of others (networks.go);
//   - nothing but Leases is written then;
//   - what was written is in proportion to what happened.
//
// Operations, faults and their times follow from the seed. What happens in the same instant of virtual time is in the
// order of the Go scheduler, and jitter of client-go and of the product is not seeded: a finding may need several runs
// of its seed to come back.
//
// Faults are rows of a table (faults.go), and operations those of package oracle.
package schedule

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle"
)

// A Schedule is what happens to some clusters.
type Schedule struct {
	Seed     uint64
	Clusters int
	// Networks are those of the clusters when it begins, by number; nil if there are none: see networks.go.
	Networks []string
	// Events are in the order of their times.
	Events []Event
}

// An Event is an operation or a fault. It makes sense whatever happened before,
// or else does nothing: any subset of a schedule is one.
type Event struct {
	// At is the time since the schedule began.
	At time.Duration
	// Kind is operation, or that of a fault.
	Kind string
	// Cluster is the number of the cluster where it happens, and Other that of a member which is concerned.
	Cluster, Other int
	// Lasts is how long a fault lasts.
	Lasts time.Duration
	// Random is the seed of what else is drawn.
	Random uint64
}

// The kind of an Event that changes a service, of one that changes the shares of clusters, and of the fault that forgets
// old revisions.
const (
	operation  = "operation"
	reweigh    = "the shares of clusters change"
	compaction = "the API server compacts"
)

const (
	// longest is how long a fault lasts at most. It is much longer than a member may be silent before it is demoted.
	longest = 80 * time.Second
	// storm is when the last event happens at the latest.
	storm = 80 * time.Second
)

// New returns the schedule of a seed: 5 to 24 operations and faults within 80 s,
// and what changes during the faults, on 2 to 8 clusters, mostly 2 or 3.
func New(seed uint64) Schedule {
	random := rand.New(rand.NewPCG(seed, 1))
	s := Schedule{
		Seed:     seed,
		Clusters: []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 5 + random.IntN(4)}[random.IntN(20)],
	}
	for range 5 + random.IntN(20) {
		s.draw(random)
	}
	s.some(reweigh, rand.New(rand.NewPCG(seed, 6))) // with random numbers of their own
	s.network()
	slices.SortStableFunc(s.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return s
}

// draw adds an operation or a fault.
func (s *Schedule) draw(random *rand.Rand) {
	total := 0
	for _, each := range faults {
		total += each.weight
	}
	e := Event{
		At: time.Duration(random.Int64N(int64(storm))).Round(time.Millisecond), Kind: operation,
		Random: random.Uint64(),
	}
	e.Cluster = random.IntN(s.Clusters)
	e.Other = (e.Cluster + 1 + random.IntN(s.Clusters-1)) % s.Clusters
	if random.IntN(5) < 2 {
		at := random.IntN(total)
		for _, each := range faults {
			if at -= each.weight; at < 0 {
				e.Kind = each.kind
				e.Lasts = oracle.Duration(random, longest)
				s.Events = append(s.Events, meanwhile(random, each, e)...)
				break
			}
		}
	}
	s.Events = append(s.Events, e)
}

// some adds up to eleven events of a kind.
func (s *Schedule) some(kind string, random *rand.Rand) {
	for range random.IntN(12) {
		s.Events = append(s.Events, Event{
			At: time.Duration(random.Int64N(int64(storm))).Round(time.Millisecond), Kind: kind,
			Cluster: random.IntN(s.Clusters), Random: random.Uint64(),
		})
	}
}

// meanwhile returns what changes where nobody may notice because of a fault, and is to be noticed afterwards: up to
// three operations, and at times a compaction that leaves no trace of them.
func meanwhile(random *rand.Rand, f fault, of Event) (events []Event) {
	changes := Event{Kind: operation, Cluster: of.Cluster, Other: of.Other}
	if f.pair {
		changes.Cluster, changes.Other = of.Other, of.Cluster
	}
	for range random.IntN(4) {
		changes.At, changes.Random = of.At+time.Duration(random.Int64N(int64(of.Lasts)+1)).Round(time.Millisecond),
			random.Uint64()
		events = append(events, changes)
	}
	if random.IntN(4) == 0 {
		changes.At, changes.Kind = of.At+of.Lasts, compaction
		events = append(events, changes)
	}
	return events
}

// names are those of the clusters, which certificates are for.
func (s Schedule) names() (names []string) {
	for i := range s.Clusters {
		names = append(names, fmt.Sprintf("c%d", i+1))
	}
	return names
}

// SPDX-License-Identifier: Apache-2.0

// Package schedule runs random schedules of operations and faults on simulated cluster sets, and compares what clients
// see with the exports.
//
// A schedule depends only on its seed (New). Run carries it out, and asserts during and after it:
//
//   - no answer or copy is wrong, or out of date for long (oracle.Judge);
//   - no healthy endpoint is lost: endpoints of reachable clusters arrive; those of
//     unreachable clusters stay, but get no traffic if another cluster has the service;
//   - no cluster gets endpoints that are not for it, or uses or answers any outside of the allowed clusters (placed.go);
//   - endpoints are used in the same order in all clusters at any moment (placed.go);
//   - at the end, all clusters have the correct result of the exports (oracle.Judge.Check);
//   - in every third schedule, clusters see pods of their own network, and nodes of other networks (networks.go);
//   - then only Leases are written;
//   - the number of writes is in proportion to the changes.
//
// Operations, faults and their times follow from the seed. The order of events in the same instant of virtual time
// depends on the Go scheduler, and the jitter of client-go and of the product is not seeded: a finding may need several
// runs of its seed to recur.
//
// Faults are rows of a table (faults.go). Operations are in package oracle.
package schedule

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/sim/oracle"
)

// A Schedule is a list of events in a cluster set.
type Schedule struct {
	Seed     uint64
	Clusters int
	// Networks are the initial networks of the clusters, by number; nil if there are none, see networks.go.
	Networks []string
	// Events are sorted by time.
	Events []Event
}

// An Event is an operation or a fault. It is valid, or has no effect, whatever happened before it, so any subset of a
// schedule is a schedule.
type Event struct {
	// At is the time since the schedule began.
	At time.Duration
	// Kind is the kind of the operation or fault.
	Kind string
	// Cluster is the number of the affected cluster, and Other the number of the affected member.
	Cluster, Other int
	// Lasts is the duration of a fault.
	Lasts time.Duration
	// Random is the seed of further random choices.
	Random uint64
}

// The kinds of events that change a service, and that change the shares of clusters, and the kind of the fault that
// compacts old revisions.
const (
	operation  = "operation"
	reweigh    = "the shares of clusters change"
	compaction = "the API server compacts"
)

const (
	// longest is the longest duration of a fault. It is much longer than the time after which a member is demoted.
	longest = 80 * time.Second
	// storm is the time within which all events begin.
	storm = 80 * time.Second
)

// New returns the schedule of a seed: 5 to 24 operations and faults within 80 s, and changes during the faults, on 2 to
// 8 clusters, mostly 2 or 3.
func New(seed uint64) Schedule {
	random := rand.New(rand.NewPCG(seed, 1))
	s := Schedule{
		Seed:     seed,
		Clusters: []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 5 + random.IntN(4)}[random.IntN(20)],
	}
	for range 5 + random.IntN(20) {
		s.draw(random)
	}
	s.some(reweigh, rand.New(rand.NewPCG(seed, 6))) // from separate random numbers
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

// some adds up to eleven events of this kind.
func (s *Schedule) some(kind string, random *rand.Rand) {
	for range random.IntN(12) {
		s.Events = append(s.Events, Event{
			At: time.Duration(random.Int64N(int64(storm))).Round(time.Millisecond), Kind: kind,
			Cluster: random.IntN(s.Clusters), Random: random.Uint64(),
		})
	}
}

// meanwhile returns changes that a fault may hide and that must be seen after it: up to three operations, and sometimes
// a compaction that removes their events.
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

// names returns the names of the clusters; the certificates have the same names.
func (s Schedule) names() (names []string) {
	for i := range s.Clusters {
		names = append(names, fmt.Sprintf("c%d", i+1))
	}
	return names
}

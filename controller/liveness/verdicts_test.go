// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"
)

// walk lets random things happen to Verdicts, and calls check after each, with the facts and what was told.
func walk(random *rand.Rand, l Limits, check func(now time.Time, v *Verdicts, facts map[string]Member, told []Change)) {
	v, facts, away := NewVerdicts(l), map[string]Member{}, map[string]bool{}
	now := at(0)
	clusters := []string{"a", "b", "c", "d", "e"}[:1+random.IntN(5)]
	for range 150 {
		now = now.Add(time.Duration(random.Int64N(int64(5*time.Second)) / int64(len(clusters))))
		if random.IntN(40) == 0 {
			// All or one fall silent, or are heard again.
			gone := random.IntN(2) == 0
			for _, cluster := range clusters[random.IntN(len(clusters)):] {
				away[cluster] = gone
			}
		}
		if random.IntN(60) == 0 {
			now = now.Add(time.Duration(random.Int64N(int64(time.Minute))))
		}
		cluster := clusters[random.IntN(len(clusters))]
		m, known := facts[cluster]
		var told []Change
		switch what := random.IntN(100); {
		case !known:
			m = Member{Cluster: cluster, Arrivals: Arrivals{Joined: now}, Before: State(random.IntN(3))}
			facts[cluster] = m
			told = v.Set(now, m)
		case what < 2:
			delete(facts, cluster)
			told = v.Remove(now, cluster)
		case what < 10:
			m.Drained = random.IntN(2) == 0
			m.Mistaken = random.IntN(4) == 0
			m.KnownUID = []string{"", "uid-0", "uid-1"}[random.IntN(3)]
			if m.Lost, m.Shrunk = (time.Time{}), (time.Time{}); random.IntN(2) == 0 {
				m.Lost, m.Shrunk = now, now
			}
			facts[cluster] = m
			told = v.Set(now, m)
		case what < 15:
			m.Arrivals = m.Arrivals.Seen(now, "uid-0")
			facts[cluster] = m
			told = v.Set(now, m)
		case what < 20 || away[cluster]:
			told = v.Pass(now)
		default:
			late := time.Duration(random.Int64N(int64(50 * time.Millisecond)))
			if random.IntN(20) == 0 {
				late = time.Duration(random.Int64N(int64(20 * time.Second)))
			}
			m.Arrivals = m.Arrivals.Heard(now.Add(-late), "uid-"+string(rune('0'+random.IntN(20)/19)), l)
			facts[cluster] = m
			told = v.Set(now, m)
		}
		check(now, v, facts, told)
	}
}

// TestVerdictsAreThoseOfJudge: whatever happens in whatever order, judging one member at a time gives what judging all
// of them gives.
func TestVerdictsAreThoseOfJudge(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	isolated, states := 0, map[string]int{}
	for range worlds / 4 {
		before := map[string]Verdict{}
		walk(random, randomLimits(random), func(now time.Time, v *Verdicts, facts map[string]Member, told []Change) {
			want := Judge(now, v.limits, slices.Collect(maps.Values(facts)))
			got := v.Judgement()
			if got.Isolated != want.Isolated || !slices.Equal(got.Members, want.Members) {
				t.Fatalf("got %s, want %s", text(got), text(want))
			}
			if got.Next.IsZero() != want.Next.IsZero() || got.Next.After(want.Next) || !got.Next.IsZero() &&
				!got.Next.After(now) {
				t.Fatalf("the next judgement is due at %s, want after %s and until %s", got.Next, now, want.Next)
			}
			var changes []Change
			after := map[string]Verdict{}
			for _, is := range got.Members {
				was, known := before[is.Cluster]
				if !known {
					was = unknown(is.Cluster)
				}
				if was != is {
					changes = append(changes, Change{was, is})
				}
				after[is.Cluster] = is
				states[fmt.Sprint(is.State, is.Reason)]++
			}
			if !reflect.DeepEqual(told, changes) {
				t.Fatalf("told of %+v, want %+v", told, changes)
			}
			if before = after; got.Isolated {
				isolated++
			}
		})
	}
	if isolated < worlds/4 || len(states) < 9 {
		t.Errorf("only %d judgements were isolated, and these were given: %v", isolated, states)
	}
}

// TestAHeartbeatIsOneLook: the work for a heartbeat does not depend on the number of members.
func TestAHeartbeatIsOneLook(t *testing.T) {
	const intervals = 20
	for _, members := range []int{10, 500} {
		v := NewVerdicts(limits)
		arrivals := make([]Arrivals, members)
		now := at(0)
		beat := func(i int) {
			now = now.Add(limits.Interval / time.Duration(members))
			arrivals[i] = arrivals[i].Heard(now, "uid-1", limits)
			v.Set(now, Member{Cluster: fmt.Sprint(i), Arrivals: arrivals[i]})
		}
		for i := range arrivals {
			arrivals[i] = Arrivals{Joined: now}
			v.Set(now, Member{Cluster: fmt.Sprint(i), Arrivals: arrivals[i]})
			beat(i)
		}
		v.looks = 0
		for range intervals {
			for i := range arrivals {
				beat(i)
			}
		}
		// One at each heartbeat, and one to see in each interval that nobody is silent.
		if most := 2*intervals*members + members; v.looks > most {
			t.Errorf("%d members were looked at %d times in %d intervals, want at most %d", members, v.looks, intervals,
				most)
		}
	}
}

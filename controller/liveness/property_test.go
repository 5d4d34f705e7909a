// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

const worlds = 1000

// world makes random members that were listened to for some minutes.
func world(random *rand.Rand) (members []Member, until time.Time) {
	end := 1 + random.IntN(900)
	members = make([]Member, 1+random.IntN(4))
	for i := range members {
		m := Member{
			Cluster:  string(rune('a' + i)),
			Arrivals: Arrivals{Joined: at(random.IntN(30))},
			Before:   State(random.IntN(3)),
			Drained:  random.IntN(5) == 0,
		}
		if random.IntN(2) == 0 {
			m.KnownUID = "uid-0"
		}
		if random.IntN(5) == 0 {
			m.Lost = at(random.IntN(end))
			m.Shrunk = m.Lost
		}
		away := false
		for second := random.IntN(5); second < end; second += 4 + random.IntN(3) {
			if random.IntN(12) == 0 {
				away = !away
			}
			if !away {
				m.Arrivals.Missed = at(second).Sub(m.Arrivals.silentFrom())
				m.Arrivals = m.Arrivals.Heard(at(second), "uid-"+string(rune('0'+random.IntN(20)/19)), limits)
			}
		}
		m.Arrivals.Missed = at(end).Sub(m.Arrivals.silentFrom())
		members[i] = m
	}
	return members, at(end)
}

func randomLimits(random *rand.Rand) Limits {
	l := limits
	if random.IntN(2) == 0 {
		l.GoneAfter = l.StaleAfter + time.Duration(1+random.IntN(300))*time.Second
	}
	return l
}

func TestSilenceOnlyGetsWorse(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	for range worlds {
		members, now := world(random)
		l := randomLimits(random)
		before := judgeAll(now, l, members, Opinion{})
		for range 20 {
			passed := time.Duration(random.Int64N(int64(40 * time.Second)))
			now = now.Add(passed)
			tick(now, passed, members)
			after := judgeAll(now, l, members, Opinion{})
			for i := range after.members {
				was, is := before.members[i], after.members[i]
				if is.State < was.State || was.Demote && !is.Demote || was.Keep != is.Keep {
					t.Fatalf("%+v became %+v with time alone", was, is)
				}
			}
			before = after
		}
	}
}

// TestAHeartbeatHelps: a heartbeat never makes the state of its member worse than time alone had it.
func TestAHeartbeatHelps(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	for range worlds {
		members, now := world(random)
		i := random.IntN(len(members))
		before := Judge(now, limits, members[i], Opinion{})
		members[i].Arrivals = members[i].Arrivals.Heard(now, members[i].Arrivals.UID, limits)
		if after := Judge(now, limits, members[i], Opinion{}); after.State > before.State {
			t.Fatalf("%+v became %+v when it was heard", before, after)
		}
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	arrivals := Arrivals{Joined: at(0)}
	for i := range 1000 {
		arrivals.Missed = limits.StaleAfter
		arrivals = arrivals.Heard(at(i*20), "uid-1", limits)
	}
	if len(arrivals.Failures) != flaps || cap(arrivals.Failures) > 2*flaps || !arrivals.Last.Equal(at(999*20)) {
		t.Errorf("%d failures are kept, the last heartbeat at %s", len(arrivals.Failures), arrivals.Last)
	}
	if again := arrivals.Heard(at(100), "uid-2", limits); !reflect.DeepEqual(again, arrivals) {
		t.Errorf("an old heartbeat changed %+v to %+v", arrivals, again)
	}
}

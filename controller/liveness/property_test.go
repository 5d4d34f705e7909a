// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"math/rand/v2"
	"reflect"
	"slices"
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
				m.Arrivals = m.Arrivals.Heard(at(second), "uid-"+string(rune('0'+random.IntN(20)/19)), limits)
			}
		}
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

func TestOrderMeansNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range worlds {
		members, now := world(random)
		l := randomLimits(random)
		want := Judge(now, l, members)
		shuffled := slices.Clone(members)
		random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := Judge(now, l, shuffled); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %s, want %s", text(got), text(want))
		}
	}
}

func TestSilenceOnlyGetsWorse(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	for range worlds {
		members, now := world(random)
		l := randomLimits(random)
		before := Judge(now, l, members)
		for range 20 {
			now = now.Add(time.Duration(random.Int64N(int64(40 * time.Second))))
			after := Judge(now, l, members)
			for i := range after.Members {
				was, is := before.Members[i], after.Members[i]
				if is.State < was.State || was.Demote && !is.Demote || was.Keep != is.Keep {
					t.Fatalf("%+v became %+v with time alone", was, is)
				}
			}
			before = after
		}
	}
}

// TestNextIsNotLate: between two judgements that are due nothing changes.
func TestNextIsNotLate(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for range worlds {
		members, now := world(random)
		l := randomLimits(random)
		for {
			judgement := Judge(now, l, members)
			next, end := judgement.Next, judgement.Next
			if next.IsZero() {
				end = now.Add(24 * time.Hour)
			} else if !next.After(now) {
				t.Fatalf("the next judgement is due %s before this one", now.Sub(next))
			}
			for range 10 {
				between := now.Add(time.Duration(random.Int64N(int64(end.Sub(now)))))
				later := Judge(between, l, members)
				if later.Isolated != judgement.Isolated || !sameStates(later, judgement) {
					t.Fatalf("judged at %s and due at %s: %s, became %s at %s", now, next, text(judgement), text(later),
						between)
				}
			}
			if next.IsZero() {
				break
			}
			now = next
		}
	}
}

// sameStates compares all but the reason of what stays fresh.
func sameStates(a, b Judgement) bool {
	return slices.EqualFunc(a.Members, b.Members, func(a, b Verdict) bool { return a == b })
}

// TestIsolatednessDemotesNothingNew: while nobody is heard nothing is demoted that was not before.
func TestIsolatednessDemotesNothingNew(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	isolated := 0
	for range worlds {
		members, now := world(random)
		l := randomLimits(random)
		first := Judge(now, l, members)
		if !first.Isolated {
			continue
		}
		isolated++
		for range 10 {
			now = now.Add(time.Duration(random.Int64N(int64(time.Hour))))
			if later := Judge(now, l, members); !later.Isolated || !sameStates(first, later) {
				t.Fatalf("%s became %s", text(first), text(later))
			}
		}
	}
	if isolated < worlds/100 {
		t.Errorf("only %d of %d worlds were isolated", isolated, worlds)
	}
}

// TestAHeartbeatHelps: a heartbeat never makes the state of its member worse than time alone had it, and nobody's else
// worse than it would be an instant later.
func TestAHeartbeatHelps(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	for range worlds {
		members, now := world(random)
		before := Judge(now, limits, members)
		i := random.IntN(len(members))
		changed := slices.Clone(members)
		changed[i].Arrivals = changed[i].Arrivals.Heard(now, changed[i].Arrivals.UID, limits)
		changed[i].Before = min(changed[i].Before, members[i].Before)
		after := Judge(now, limits, changed)
		for j := range members {
			if after.Members[j].State > before.Members[j].State {
				t.Fatalf("%s became %s when %s was heard", text(before), text(after), changed[i].Cluster)
			}
		}
	}
}

func TestTheInputIsNotChanged(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 1))
	for range worlds {
		members, now := world(random)
		before := make([]Member, len(members))
		for i, m := range members {
			before[i] = m
			before[i].Arrivals.Silences = slices.Clone(m.Arrivals.Silences)
		}
		Judge(now, randomLimits(random), members)
		for _, m := range members {
			m.Arrivals.Heard(now, "uid-9", limits)
		}
		if !reflect.DeepEqual(members, before) {
			t.Fatal("the members were changed")
		}
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	arrivals := Arrivals{Joined: at(0)}
	for i := range 1000 {
		arrivals = arrivals.Heard(at(i*20), "uid-1", limits)
	}
	if len(arrivals.Silences) != maxSilences || !arrivals.Last.Equal(at(999*20)) {
		t.Errorf("%d silences are kept, the last heartbeat at %s", len(arrivals.Silences), arrivals.Last)
	}
	if again := arrivals.Heard(at(100), "uid-2", limits); !reflect.DeepEqual(again, arrivals) {
		t.Errorf("an old heartbeat changed %+v to %+v", arrivals, again)
	}
}

// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestTimeAndHeartbeats: time alone never improves the state of a member, and a heartbeat never worsens it. The facts kept
// about a member are bounded.
func TestTimeAndHeartbeats(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		l := limits
		if random.IntN(2) == 0 {
			l.GoneAfter = l.StaleAfter + time.Duration(1+random.IntN(300))*time.Second
		}
		members := make([]Member, 1+random.IntN(4)) // the others decide whether the fault is local
		for i := range members {
			members[i].Arrivals.Steady = at(0)
		}
		m := &members[0]
		m.Before, m.Drained = State(random.IntN(3)), random.IntN(5) == 0
		if random.IntN(2) == 0 {
			m.KnownUID = "uid-0"
		}
		if random.IntN(5) == 0 {
			m.Lost = at(random.IntN(900))
			m.Shrunk = m.Lost
		}
		now, away, uid := at(0), false, "uid-0"
		for range 200 {
			before := Judge(now, l, *m)
			passed := time.Duration(random.IntN(8)) * time.Second
			if random.IntN(20) == 0 {
				away, passed = !away, time.Duration(random.IntN(40))*time.Second
			}
			now = now.Add(passed)
			tick(now, passed, members)
			after := Judge(now, l, *m)
			if after.State < before.State || before.Demote && !after.Demote || before.Keep != after.Keep {
				t.Fatalf("seed %d: %+v became %+v with time alone", seed, before, after)
			}
			for i := range members[1:] {
				if random.IntN(3) > 0 {
					members[1+i].Arrivals = members[1+i].Arrivals.Received(now, "", l)
				}
			}
			if away {
				continue
			}
			if random.IntN(20) == 0 {
				uid = "uid-1"
				m.Arrivals = m.Arrivals.Seen(now, uid)
				after = Judge(now, l, *m)
			}
			m.Arrivals = m.Arrivals.Received(now, uid, l)
			if heard := Judge(now, l, *m); heard.State > after.State || cap(m.Arrivals.Failures) > 2*flaps {
				t.Fatalf("seed %d: %+v became %+v when it was heard, with %v", seed, after, heard, m.Arrivals)
			}
		}
	}
}

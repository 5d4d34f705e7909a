// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"sync"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// cutOff: a member is unreachable in both directions, but keeps running. It demotes all other clusters, which takes no
// endpoint away from services without a ready endpoint of its own.
func cutOff(s *Set, east, west, north *Cluster) {
	ways := []Pair{{east, west}, {north, west}, {west, east}, {west, north}}
	s.cut(ways...)
	s.Holds(20*time.Second, healthy)
	home := healthy.With("web", "north/10.66.0.1~ west/10.65.0.1 -> VIP", "db", "north/10.66.0.3~ west/10.65.0.3 -> 10.65.0.3")
	s.Judged(Pair{west, east}, "NoHeartbeat")
	s.Except(west, home, westDemoted)
	north.SetEndpoints("db", "10.66.0.9")
	west.SetEndpoints("solo", "10.65.0.9")
	s.Except(west, home.With("solo", "west/10.65.0.9 -> VIP"),
		westDemoted.With("db", "north/10.66.0.9 west/10.65.0.3~ -> 10.66.0.9"))
	s.restore(ways...)
	s.Expect(healthy.With("db", "north/10.66.0.9 west/10.65.0.3 -> 10.65.0.3 10.66.0.9", "solo", "west/10.65.0.9 -> VIP"))
	for _, p := range s.Pairs() {
		s.LeaseSays(p, "fresh")
	}
}

// nobodyHeard: if no member is reachable, the fault is more likely local. Demoting all of them has no effect: traffic
// moves only to ready endpoints. That also holds across restarts, and no member becomes gone. A single unreachable
// member is removed after GoneAfter.
func nobodyHeard(s *Set, east, west, north *Cluster) {
	stay := sync.OnceFunc(s.answersStay())
	defer stay()
	p, other := Pair{east, west}, Pair{east, north}
	east.Options.Liveness.GoneAfter = 2 * time.Minute
	east.Restart()
	s.Judged(p, "Alive")
	s.Judged(other, "Alive")
	s.silence(p, other) // after the first, by as much as their heartbeats are apart
	s.Expect(healthy)
	s.Holds(4*time.Minute, healthy, east)
	s.LeaseSays(p, "stale")
	east.Restart()
	s.Holds(time.Minute, healthy, east)
	s.Judged(p, "NoHeartbeat")

	s.hear(other)
	s.Judged(p, "NoHeartbeat")
	s.Except(east, westDemoted, healthy)
	s.hear(p)
	s.Expect(healthy)
	stay()

	s.cut(p)
	s.Except(east, westDemoted, healthy)
	s.Holds(time.Minute, westDemoted, east)
	s.Except(east, westGone, healthy)
	s.LeaseSays(p, "gone")
	s.restore(p)
	s.Expect(healthy)
}

// silent cuts a member off; stopped stops the controller of a member; wrongClocks sets clocks that differ from each other and
// from before, and then cuts the member off.
var (
	silent = Silence(
		func(s *Set) { s.cut(s.Pair("east", "west")) }, func(s *Set) { s.restore(s.Pair("east", "west")) })
	stopped = Silence(
		func(s *Set) { s.Cluster("west").Stop() }, func(s *Set) { s.Cluster("west").Start() })
	wrongClocks = Silence(func(s *Set) {
		for i, c := range s.clusters {
			c.Stop()
			c.SetClock([]time.Duration{-10 * time.Minute, 20 * time.Minute}[i%2])
			c.Start()
		}
		for _, each := range s.Pairs() {
			s.Judged(each, "Alive")
		}
		s.cut(s.Pair("east", "west"))
	}, func(s *Set) { s.restore(s.Pair("east", "west")) })
)

// Silence is a scenario in which a fault ends the heartbeats of west in east. No endpoint of west is removed. West is
// demoted after 30 s and not before. Changes of other clusters apply at once, even after a restart of east. When the
// heartbeats are back, so is the view. In the meantime, the test asks west for nothing.
func Silence(begin, heal func(*Set)) Scenario {
	return Scenario{"", three, steady(func(s *Set, east, west, north *Cluster) {
		p := Pair{east, west}
		heal := sync.OnceFunc(func() { heal(s) })
		defer heal() // later scenarios may reuse the clusters
		begin(s)
		s.Holds(18*time.Second, healthy, east)
		s.Judged(p, "NoHeartbeat")
		s.LeaseSays(p, "stale")
		east.ExpectEvent(s.secretOf(p), memberstate.EventMemberStale)
		s.Expect(westDemoted, east)
		east.Restart()
		north.Export("late!10.66.0.7")
		east.Export("own!10.64.0.7")
		others := View{"late": "north/10.66.0.7 -> 10.66.0.7", "own": "east/10.64.0.7 -> 10.64.0.7"}
		s.Holds(6*time.Second, westDemoted, east)
		if s.Rate() == 1 { // an unreachable member does not delay the others
			s.must(east.differs(others))
		}
		s.Expect(others, east)
		north.SetEndpoints("db", "10.66.0.9")
		s.Expect(westDemoted.With("db", "north/10.66.0.9 west/10.65.0.3~ -> 10.66.0.9"), east)
		heal()
		s.Judged(p, "Alive")
		s.LeaseSays(p, "fresh")
		east.ExpectEvent(s.secretOf(p), memberstate.EventMemberRecovered)
		west.SetEndpoints("solo", "10.65.0.9")
		s.Expect(
			healthy.With("db", "north/10.66.0.9 west/10.65.0.3 -> 10.65.0.3 10.66.0.9", "solo",
				"west/10.65.0.9 -> VIP"))
	})}
}

// NoSilence is a scenario in which a fault must not end the heartbeats of west in east.
func NoSilence(begin, heal func(*Set)) Scenario {
	return Scenario{"", three, steady(func(s *Set, east, west, _ *Cluster) {
		begin(s)
		s.Holds(time.Minute, healthy, east)
		heal(s)
		west.SetEndpoints("solo", "10.65.0.9")
		s.Pass(30 * time.Second)
		s.must(east.differs(healthy.With("solo", "west/10.65.0.9 -> VIP")))
	})}
}

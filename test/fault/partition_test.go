// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

// TestPartition: what changes hands while a way is cut, and what does not.
func TestPartition(t *testing.T) {
	b := newBed(t)
	b.fault("what comes from a member is enough", func(b *bed) {
		b.ways[pair{b.east, b.west}].CutOff(link.ToServer)
		b.pass(time.Minute, b.pairs()...)
		b.endpoints(b.west, "lone", "10.65.0.9")
		b.expect(healthy.with("lone", "west/10.65.0.9 -> 10.65.0.9"))
	})
	b.fault("all exports of a member change meanwhile", testChangesWhileCutOff)
	b.fault("the watch cache was compacted meanwhile", testCompaction)
	b.fault("its reader restarts meanwhile", testRestartWhileAMemberIsAway)
	b.fault("its reader restarts while nobody is heard", testRestartWhileNobodyIsHeard)
	b.fault("all members fall silent at once", testAllMembersFallSilentAtOnce)
	b.fault("it flaps", testFlapping)
	b.fault("it flaps and its reader restarts", testFlappingAcrossRestart)
	b.fault("it is gone after a time that the operator set", testGoneAfter)
	b.fault("it leaves while it is silent", testLeavesWhileSilent)
	b.fault("the clocks are corrected by ten minutes", testClocksAreCorrected)
}

// testChangesWhileCutOff: what was un-exported, exported, moved and taken back
// while nobody listened arrives when the way is whole.
func testChangesWhileCutOff(b *bed) {
	const late = "late"
	b.must(ignoreNotFound(b.removeService(b.west, late)))
	b.ways[pair{b.east, b.west}].CutOff(link.Both)
	b.mayGo([]string{"lone", late})
	b.unexport(b.west, "lone")
	b.endpoints(b.west, "solo", "10.65.0.8")
	b.endpoints(b.west, "db", "10.65.0.9")
	b.service(b.west, late, true)
	b.endpoints(b.west, late, "10.65.0.7")
	b.export(b.west, late)
	seen := healthy.with("lone", gone).
		with("solo", "west/10.65.0.8 -> IP").
		with("db", "north/10.66.0.3 west/10.65.0.9 -> 10.65.0.9 10.66.0.3").
		with(late, "west/10.65.0.7 -> 10.65.0.7")
	b.expect(healthy.with(late, gone), b.east)
	b.expect(seen, b.west, b.north)
	b.ways[pair{b.east, b.west}].Reset() // what was on its way is lost
	b.ways[pair{b.east, b.west}].Reconnect()
	b.arrives(seen)
	b.unexport(b.west, late)
	b.expect(seen.with(late, gone))
	b.calm()
}

// testCompaction: the watch cannot go on where it was, and begins anew.
func testCompaction(b *bed) {
	way := b.ways[pair{b.east, b.west}]
	way.CutOff(link.Both)
	way.Reset()
	before := b.revision(b.west)
	b.mayGo([]string{"lone"})
	b.unexport(b.west, "lone")
	b.endpoints(b.west, "solo", "10.65.0.8")
	seen := healthy.with("lone", gone).with("solo", "west/10.65.0.8 -> IP")
	b.expect(healthy, b.east)
	b.expect(seen, b.west, b.north)
	// The API server still has what happened, until it is another one.
	b.compact(b.west)
	b.must(b.west.APIServer().Kill())
	b.must(b.west.APIServer().Start(b.Context()))
	b.isGone(b.west, before)
	b.expect(healthy, b.east)
	way.Reconnect()
	b.arrives(seen)
	b.calm()
}

// testRestartWhileAMemberIsAway: what is known of it and of its life comes back
// from the own cluster.
func testRestartWhileAMemberIsAway(b *bed) {
	p := pair{b.east, b.west}
	live := b.pairs(p)
	b.ways[p].CutOff(link.Both)
	b.ways[p].Reset()
	b.falls(36*time.Second, live...)
	b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
	b.lease(p, "stale")

	b.east.stop()
	b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
	b.start(b.east)
	b.judged(p, "Silent")
	b.beat(live...)
	b.endpoints(b.north, "db", "10.66.0.9")
	seen := healthy.with("db", "north/10.66.0.9 west/10.65.0.3 -> 10.65.0.3 10.66.0.9")
	b.everywhere(seen, map[*cluster]view{b.east: westDemoted.with("db", "north/10.66.0.9 west/10.65.0.3~ -> 10.66.0.9")})
	b.judged(p, "Silent")

	b.ways[p].Reconnect()
	b.beat(b.pairs()...)
	b.expect(seen)
	b.calm()
}

// testRestartWhileNobodyIsHeard: nothing is known but what the own cluster
// remembers, and that is enough.
func testRestartWhileNobodyIsHeard(b *bed) {
	silent := []pair{{b.east, b.west}, {b.east, b.north}}
	for _, p := range silent {
		b.ways[p].CutOff(link.Both)
		b.ways[p].Reset()
	}
	live := b.pairs(silent...)
	b.restart(b.east)
	b.pass(2*time.Minute, live...)
	b.judged(silent[0], "NobodyHeard")
	b.judged(silent[1], "NobodyHeard")
	b.expect(healthy)
	b.restart(b.east)
	b.pass(2*time.Minute, live...)
	b.expect(healthy)
	reconnect(b)
	b.beat(b.pairs()...)
	b.expect(healthy)
	b.calm()
}

// testAllMembersFallSilentAtOnce: the fault is more likely here, and nothing is
// demoted.
func testAllMembersFallSilentAtOnce(b *bed) {
	west, north := pair{b.east, b.west}, pair{b.east, b.north}
	b.ways[west].CutOff(link.Both)
	b.ways[north].CutOff(link.Both)
	b.pass(5*time.Minute, b.pairs(west, north)...)
	b.judged(west, "NobodyHeard")
	b.judged(north, "NobodyHeard")
	b.expect(healthy)
	metric, err := b.east.metric("clusterset_controller_nobody_heard", map[string]string{})
	b.must(err)
	if metric.GetGauge().GetValue() != 1 {
		b.Errorf("the metric says %v", metric)
	}

	// One is back, the other stays away.
	b.ways[north].Reconnect()
	b.beat(north)
	b.expect(healthy)
	b.falls(36*time.Second, b.pairs(west)...)
	b.judged(west, "Silent")
	b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
	b.ways[west].Reconnect()
	b.beat(b.pairs()...)
	b.expect(healthy)
	b.calm()
}

// fail is one failure of west in the eyes of east, and its return.
func (b *bed) fail() {
	b.Helper()
	p := pair{b.east, b.west}
	b.ways[p].CutOff(link.Both)
	b.falls(36*time.Second, b.pairs(p)...)
	b.judged(p, "Silent")
	b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
	b.ways[p].Reconnect()
}

// sameStart has east join members that beat already. One that it hears late after it joined, while the other is heard, would count as one
// that failed.
func (b *bed) sameStart() {
	b.Helper()
	b.restart(b.east)
	b.beat(b.pairs()...)
}

// testFlapping: twice it is believed at once, and the third time once it has
// stayed.
func testFlapping(b *bed) {
	p := pair{b.east, b.west}
	b.sameStart()
	for _, reason := range []string{"Heard", "Heard", "Flapping"} {
		b.fail()
		b.judged(p, reason)
	}
	b.pass(45*time.Second, b.pairs()...)
	b.judged(p, "Flapping")
	b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
	b.pass(25*time.Second, b.pairs()...)
	b.judged(p, "Heard")
	b.expect(healthy)
	b.calm()
}

// testFlappingAcrossRestart: failures are counted anew, so that the member is
// trusted once it is heard, and no sooner.
func testFlappingAcrossRestart(b *bed) {
	p := pair{b.east, b.west}
	b.sameStart()
	for _, reason := range []string{"Heard", "Heard", "Flapping"} {
		b.fail()
		b.judged(p, reason)
	}
	b.lease(p, "stale")
	b.restart(b.east)
	b.judged(p, "Silent")
	b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
	b.beat(b.pairs()...)
	b.expect(healthy)
	b.calm()
}

// testGoneAfter: only where the operator asks for it.
func testGoneAfter(b *bed) {
	p := pair{b.east, b.west}
	b.east.stop()
	b.east.options.GoneAfter = 2 * time.Minute
	b.start(b.east)
	b.beat(b.pairs()...)
	b.ways[p].CutOff(link.Both)
	live := b.pairs(p)
	b.falls(36*time.Second, live...)
	b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
	b.mayGo([]string{"solo", "lone"}, b.east)
	b.pass(90*time.Second, live...)
	b.everywhere(healthy, map[*cluster]view{b.east: westGone})
	b.lease(p, "gone")
	b.ways[p].Reconnect()
	b.beat(b.pairs()...)
	b.expect(healthy)
	b.calm()
}

// testLeavesWhileSilent: a person decides, and what comes back is new.
func testLeavesWhileSilent(b *bed) {
	p := pair{b.east, b.west}
	live := b.pairs(p)
	b.ways[p].CutOff(link.Both)
	b.falls(36*time.Second, live...)
	b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
	b.mayGo([]string{"solo", "lone"}, b.east)
	b.leave(p)
	b.everywhere(healthy, map[*cluster]view{b.east: westGone})
	// It joins again while it is away: nothing is known of it.
	b.join(p)
	b.falls(36*time.Second, live...)
	b.everywhere(healthy, map[*cluster]view{b.east: westGone})
	b.ways[p].Reconnect()
	b.beat(b.pairs()...)
	b.expect(healthy)
	b.calm()
}

// testClocksAreCorrected: each cluster's clock jumps, and its controller starts
// with another time than its Leases say. Silence is told all the same.
func testClocksAreCorrected(b *bed) {
	p := pair{b.east, b.west}
	for _, jump := range []time.Duration{-10 * time.Minute, 20 * time.Minute} {
		for _, c := range b.all() {
			c.stop()
			c.setClock(c.clock.Now().Add(jump))
			b.start(c)
			jump = -jump // two neighbours differ by twice as much
		}
		b.beat(b.pairs()...)
		b.expect(healthy)
		b.ways[p].CutOff(link.Both)
		live := b.pairs(p)
		b.pass(24*time.Second, live...)
		b.expect(healthy)
		b.falls(12*time.Second, live...)
		b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
		b.lease(p, "stale")
		b.restart(b.east)
		b.beat(live...)
		b.judged(p, "Silent")
		b.everywhere(healthy, map[*cluster]view{b.east: westDemoted})
		b.ways[p].Reconnect()
		b.beat(b.pairs()...)
		b.expect(healthy)
	}
	b.calm()
}

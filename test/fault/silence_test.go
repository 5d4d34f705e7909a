// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

// TestAMemberFallsSilent: whatever makes it so, its endpoints are demoted after
// 30 s and not before, where another cluster has a ready one and nowhere else.
// When it is back, all is as before, and what changed meanwhile arrives.
func TestAMemberFallsSilent(t *testing.T) {
	faults := []struct {
		name         string
		begin, heal  func(*bed)
		westIsFrozen bool // nothing can be written there while it lasts
	}{
		{
			name:  "its API server is frozen",
			begin: func(b *bed) { b.must(b.west.APIServer().Freeze()) },
			heal:  func(b *bed) { b.must(b.west.APIServer().Thaw()) }, westIsFrozen: true,
		},
		{
			name:  "its API server is killed",
			begin: func(b *bed) { b.must(b.west.APIServer().Kill()) },
			heal:  func(b *bed) { b.must(b.west.APIServer().Start(b.Context())) }, westIsFrozen: true,
		},
		{
			name:  "the way is cut in both directions",
			begin: func(b *bed) { b.ways[b.west].CutOff(link.Both) },
			heal:  func(b *bed) { b.ways[b.west].Reconnect() },
		},
		{
			name:  "the way is cut in both directions, and its connections end",
			begin: func(b *bed) { b.ways[b.west].CutOff(link.Both); b.ways[b.west].Reset() },
			heal:  func(b *bed) { b.ways[b.west].Reconnect() },
		},
		{
			name:  "nothing comes from it",
			begin: func(b *bed) { b.ways[b.west].CutOff(link.FromServer) },
			heal:  func(b *bed) { b.ways[b.west].Reconnect() },
		},
		{
			name:  "nothing gets to it",
			begin: func(b *bed) { b.ways[b.west].CutOff(link.ToServer); b.ways[b.west].Reset() },
			heal:  func(b *bed) { b.ways[b.west].Reconnect() },
		},
		{
			name:  "its controller is dead",
			begin: func(b *bed) { b.west.stop() },
			heal:  func(b *bed) { b.start(b.west) },
		},
	}
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			b := newBed(t)
			live := b.pairs(b.west)
			fault.begin(b)
			healed := false
			defer func() {
				if !healed {
					fault.heal(b) // the clusters are shared
				}
			}()

			b.pass(24*time.Second, live...)
			b.expect(healthy)
			b.pass(12*time.Second, live...)
			b.judged(b.west, "Silent")
			b.expect(westDemoted)
			b.lease(b.west, "stale")
			// However long it lasts.
			b.pass(time.Minute, live...)
			b.expect(westDemoted)
			// What is seen of the others applies at once.
			b.endpoints(b.north, "db", "10.66.0.9")
			moved := westDemoted
			moved.db = "north/10.66.0.9 west/10.65.0.3~ -> 10.66.0.9"
			b.expect(moved)
			if !fault.westIsFrozen {
				b.endpoints(b.west, "solo", "10.65.0.9")
			}

			fault.heal(b)
			healed = true
			if fault.westIsFrozen {
				b.endpoints(b.west, "solo", "10.65.0.9")
			}
			b.beat(b.pairs()...)
			back := healthy
			back.db = "north/10.66.0.9 west/10.65.0.3 -> 10.65.0.3 10.66.0.9"
			back.solo = "west/10.65.0.9 -> IP"
			b.expect(back)
			b.lease(b.west, "fresh")
		})
	}
}

// lease waits until the Lease of a member says so.
func (b *bed) lease(of *cluster, state string) {
	b.Helper()
	b.eventually("Lease of "+of.Name(), func(ctx context.Context) error {
		lease, err := b.east.CoordinationV1().Leases(system).Get(ctx, controller.MemberLeasePrefix+of.Name(), metav1.GetOptions{})
		if err == nil && lease.Annotations[controller.MemberStateAnnotation] != state {
			err = fmt.Errorf("it says %v, not %s", lease.Annotations, state)
		}
		return err
	})
}

// TestWhatComesFromAMemberIsEnough: as long as its heartbeats arrive over the
// connection that there is, it is fresh.
func TestWhatComesFromAMemberIsEnough(t *testing.T) {
	b := newBed(t)
	b.ways[b.west].CutOff(link.ToServer)
	b.pass(time.Minute, b.pairs()...)
	b.endpoints(b.west, "lone", "10.65.0.9")
	seen := healthy
	seen.lone = "west/10.65.0.9 -> 10.65.0.9"
	b.expect(seen)
}

// TestRestartWhileAMemberIsAway: what is known of it and of its life comes back
// from the own cluster.
func TestRestartWhileAMemberIsAway(t *testing.T) {
	b := newBed(t)
	live := b.pairs(b.west)
	b.ways[b.west].CutOff(link.Both)
	b.ways[b.west].Reset()
	b.pass(36*time.Second, live...)
	b.expect(westDemoted)
	b.lease(b.west, "stale")

	b.east.stop()
	b.expect(westDemoted)
	b.start(b.east)
	b.judged(b.west, "Silent")
	b.beat(live...)
	b.endpoints(b.north, "db", "10.66.0.9")
	moved := westDemoted
	moved.db = "north/10.66.0.9 west/10.65.0.3~ -> 10.66.0.9"
	b.expect(moved)
	b.judged(b.west, "Silent")

	b.ways[b.west].Reconnect()
	b.beat(b.pairs()...)
	back := healthy
	back.db = "north/10.66.0.9 west/10.65.0.3 -> 10.65.0.3 10.66.0.9"
	b.expect(back)
}

// TestAllMembersFallSilentAtOnce: the fault is more likely here, and nothing is
// demoted.
func TestAllMembersFallSilentAtOnce(t *testing.T) {
	b := newBed(t)
	others := []pair{{b.west, b.east}, {b.west, b.north}, {b.north, b.east}, {b.north, b.west}}
	for _, way := range b.ways {
		way.CutOff(link.Both)
	}
	b.pass(5*time.Minute, others...)
	b.judged(b.west, "NobodyHeard")
	b.judged(b.north, "NobodyHeard")
	b.expect(healthy)
	metric, err := b.east.metric("clusterset_controller_nobody_heard", map[string]string{})
	b.must(err)
	if metric.GetGauge().GetValue() != 1 {
		t.Errorf("the metric says %v", metric)
	}

	// One is back, the other stays away.
	b.ways[b.north].Reconnect()
	b.beat(pair{b.east, b.north})
	b.expect(healthy)
	b.pass(36*time.Second, b.pairs(b.west)...)
	b.judged(b.west, "Silent")
	b.expect(westDemoted)
	b.ways[b.west].Reconnect()
	b.beat(b.pairs()...)
	b.expect(healthy)
}

// TestGoneAfter: only where the operator asks for it.
func TestGoneAfter(t *testing.T) {
	b := newBed(t)
	b.east.stop()
	b.east.options.GoneAfter = 2 * time.Minute
	b.start(b.east)
	b.beat(b.pairs()...)
	b.ways[b.west].CutOff(link.Both)
	live := b.pairs(b.west)
	b.pass(36*time.Second, live...)
	b.expect(westDemoted)
	b.pass(90*time.Second, live...)
	b.expect(westGone)
	b.lease(b.west, "gone")
	b.ways[b.west].Reconnect()
	b.beat(b.pairs()...)
	b.expect(healthy)
}

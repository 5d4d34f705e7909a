// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

// A silence is a fault by which west falls silent.
type silence struct {
	name string
	// begin is called while all is well, heal more than once.
	begin, heal func(*bed)
	// pairs are those whose reader does not hear the writer.
	pairs func(*bed) []pair
	// west is what remains of the cluster meanwhile.
	west remains
}

// remains is what goes on in a cluster.
type remains int

const (
	// works: it sees the others, and does what it has to at home.
	works remains = iota
	// deaf: it does what it has to at home.
	deaf
	// stopped: nothing is brought up to date there.
	stopped
	// away: its API server does not answer either.
	away
)

// toEast is what west says to east.
func toEast(b *bed) []pair { return []pair{{b.east, b.west}} }

// toAll is what west says to the others.
func toAll(b *bed) []pair { return []pair{{b.east, b.west}, {b.north, b.west}} }

// withAll is that, and what the others say to it.
func withAll(b *bed) []pair {
	return append(toAll(b), pair{b.west, b.east}, pair{b.west, b.north})
}

// cut cuts the ways of the pairs, and ends the connections on them if asked to.
func cut(direction link.Direction, reset bool, pairs func(*bed) []pair) func(*bed) {
	return func(b *bed) {
		for _, p := range pairs(b) {
			b.ways[p].CutOff(direction)
			if reset {
				b.ways[p].Reset()
			}
		}
	}
}

func reconnect(b *bed) {
	for _, way := range b.ways {
		way.Reconnect()
	}
}

// TestAMemberFallsSilent: whatever makes it so, its endpoints are demoted after
// 30 s and not before, where another cluster has a ready one and nowhere else.
// When it is back, all is as before, and what changed meanwhile arrives.
func TestAMemberFallsSilent(t *testing.T) {
	b := newBed(t)
	for _, fault := range slices.Concat(silencesOfTheCluster, silencesOfTheWay, silencesOfTheCredential, silencesOfTheServer) {
		b.fault(fault.name, fault.run)
	}
}

var silencesOfTheCluster = []silence{
	{
		name:  "its API server is frozen",
		begin: func(b *bed) { b.must(b.west.APIServer().Freeze()) },
		heal:  func(b *bed) { b.must(b.west.APIServer().Thaw()) },
		pairs: toAll, west: away,
	},
	{
		name:  "its API server is killed",
		begin: func(b *bed) { b.must(b.west.APIServer().Kill()) },
		heal:  func(b *bed) { b.must(b.west.APIServer().Start(context.Background())) },
		pairs: toAll, west: away,
	},
	{
		name:  "its etcd is frozen",
		begin: func(b *bed) { b.must(b.west.Etcd().Freeze()) },
		heal:  func(b *bed) { b.must(b.west.Etcd().Thaw()) },
		pairs: toAll, west: away,
	},
	{
		name:  "its etcd is killed and restarted from its data",
		begin: func(b *bed) { b.must(b.west.Etcd().Kill()) },
		heal:  func(b *bed) { b.must(b.west.Etcd().Start(context.Background())) },
		pairs: toAll, west: away,
	},
	{
		name:  "its controller is dead and its API server alive",
		begin: func(b *bed) { b.west.stop() },
		heal: func(b *bed) {
			if b.west.stop == nil && !b.Failed() {
				b.start(b.west)
			}
		},
		pairs: toAll, west: stopped,
	},
	{
		name:  "its controller loses its rights at home",
		begin: func(b *bed) { b.revoke(b.west, "clusterset-controller") },
		heal:  func(b *bed) { b.grant(b.west) },
		pairs: toAll, west: stopped,
	},
}

var silencesOfTheWay = []silence{
	{name: "the connection is half open", begin: cut(link.Both, false, toEast), heal: reconnect, pairs: toEast},
	{name: "the way is cut in both directions and its connections end", begin: cut(link.Both, true, toEast), heal: reconnect, pairs: toEast},
	{name: "nothing comes from it", begin: cut(link.FromServer, false, toEast), heal: reconnect, pairs: toEast},
	{name: "nothing gets to it", begin: cut(link.ToServer, true, toEast), heal: reconnect, pairs: toEast},
	{name: "it is cut off from all", begin: cut(link.Both, true, withAll), heal: reconnect, pairs: withAll, west: deaf},
	{name: "it hears the others and is not heard", begin: cut(link.Both, true, toAll), heal: reconnect, pairs: toAll, west: works},
}

// revoke takes the rights of an account away.
func (b *bed) revoke(c *cluster, account string) {
	b.Helper()
	b.must(c.RbacV1().ClusterRoleBindings().Delete(b.Context(), account, metav1.DeleteOptions{}))
	b.must(c.RbacV1().RoleBindings(system).Delete(b.Context(), account, metav1.DeleteOptions{}))
}

func (s silence) run(b *bed) {
	silent := s.pairs(b)
	var judges []*cluster // that have west for a silent member
	for _, p := range silent {
		if p.writer == b.west {
			judges = append(judges, p.reader)
		}
	}
	// views is what is to be seen, in those and in the rest.
	views := func(judged, rest, west view) {
		b.Helper()
		for _, c := range b.all() {
			switch {
			case c == b.west:
				b.expect(west, c)
			case slices.Contains(judges, c):
				b.expect(judged, c)
			default:
				b.expect(rest, c)
			}
		}
	}
	heal := sync.OnceFunc(func() { s.heal(b) })
	b.Cleanup(heal) // the clusters are shared
	s.begin(b)
	b.west.away = s.west == away
	live := b.pairs(silent...)

	b.pass(24*time.Second, live...)
	b.expect(healthy)
	b.falls(12*time.Second, live...)
	for _, c := range judges {
		b.judged(pair{c, b.west}, "Silent")
		b.lease(pair{c, b.west}, "stale")
	}
	if s.west == deaf {
		b.judged(pair{b.west, b.east}, "NobodyHeard")
	}
	views(westDemoted, healthy, healthy)
	// However long it lasts.
	b.pass(15*time.Second, live...)
	views(westDemoted, healthy, healthy)

	// What is seen of the others applies at once, and what is said meanwhile
	// arrives in the end.
	const db, solo = "north/10.66.0.9 west/10.65.0.3 -> 10.65.0.3 10.66.0.9", "west/10.65.0.9 -> IP"
	b.endpoints(b.north, "db", "10.66.0.9")
	if s.west != away {
		b.endpoints(b.west, "solo", "10.65.0.9")
	}
	west := map[remains]view{
		works: healthy.with("db", db).with("solo", solo), deaf: healthy.with("solo", solo), stopped: healthy, away: healthy,
	}[s.west]
	rest := healthy.with("db", db).with("solo", solo)
	views(westDemoted.with("db", "north/10.66.0.9 west/10.65.0.3~ -> 10.66.0.9"), rest, west)

	heal()
	if b.west.away {
		b.west.away = false
		b.endpoints(b.west, "solo", "10.65.0.9")
	}
	b.beat(b.pairs()...)
	b.expect(healthy.with("db", db).with("solo", solo))
	for _, p := range b.pairs() {
		b.lease(p, "fresh")
	}
	b.calm()
}

// lease waits until the Lease of a member says so.
func (b *bed) lease(p pair, state string) {
	b.Helper()
	b.eventually("Lease of "+p.writer.Name()+" in "+p.reader.Name(), func(ctx context.Context) error {
		lease, err := p.reader.CoordinationV1().Leases(system).Get(ctx, controller.MemberLeasePrefix+p.writer.Name(), metav1.GetOptions{})
		if err == nil && lease.Annotations[controller.MemberStateAnnotation] != state {
			err = fmt.Errorf("it says %v, not %s", lease.Annotations, state)
		}
		return err
	})
}

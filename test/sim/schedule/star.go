// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
	"github.com/clusterset-dns/clusterset-dns/test/sim/network"
	"github.com/clusterset-dns/clusterset-dns/test/soak/judge"
)

// Star returns the schedule of a seed for eight clusters that reach each other through two relays alone: what New has,
// and in place of faults of the ways between clusters those of relays.
func Star(seed uint64) Schedule {
	random := rand.New(rand.NewPCG(seed, 6))
	s := Schedule{Seed: seed, Clusters: small, Star: true}
	for range 10 + random.IntN(20) {
		s.draw(random, storm, longest)
	}
	s.reweighs()
	s.sort()
	return s
}

// run starts the clusters.
func (s Schedule) run(t *testing.T, scenario func(*testing.T, *sim.ClusterSet)) {
	t.Helper()
	if s.Star {
		sim.RunStar(t, s.names(), sim.RelayNames, scenario)
		return
	}
	sim.Run(t, s.names(), scenario)
}

// faults are those that can happen.
func (s Schedule) faults() []fault {
	if !s.Star {
		return faults
	}
	return append(slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return f.direct }), relayFaults...)
}

// theRelays: no fault concerns both relays, but for one that says so.
func theRelays(*happening) []string { return []string{"relays"} }

// relay is the one that the fault concerns.
func (h *happening) relay() *sim.Cluster {
	relay := h.run.relays[h.random.IntN(len(h.run.relays))]
	h.told = relay.Name + " " + h.told
	return relay
}

// ofRelay is a fault of one relay, which must not matter.
func ofRelay(kind string, weight int, begin func(*happening, *sim.Cluster) func()) fault {
	return fault{kind: kind, weight: weight, targets: theRelays, begin: func(h *happening) func() {
		return begin(h, h.relay())
	}}
}

// toRelay is a fault of the way between the cluster and a relay.
func toRelay(kind string, weight int, change func(n *network.Network, from, to string, random *rand.Rand)) fault {
	return ofRelay(kind, weight, func(h *happening, relay *sim.Cluster) func() {
		change(h.run.network, h.c.Name, relay.Name, h.random)
		return func() {
			h.run.network.Restore(h.c.Name, relay.Name)
			h.run.network.Reset(h.c.Name, relay.Name)
		}
	})
}

// lies has a relay answer all clusters wrong.
func lies(kind string, weight int, fault apiserver.Fault) fault {
	return ofRelay(kind, weight, func(_ *happening, relay *sim.Cluster) func() {
		relay.API.SetFault("", fault)
		return func() { relay.API.SetFault("", nil) }
	})
}

// relayFaults are those of a star. A new one is a row.
var relayFaults = []fault{
	ofRelay("a relay is killed", 12, func(_ *happening, relay *sim.Cluster) func() {
		relay.StopAPI()
		return relay.StartAPI
	}),
	ofRelay("a relay is frozen", 8, func(_ *happening, relay *sim.Cluster) func() {
		relay.FreezeAPI()
		return relay.StartAPI
	}),
	ofRelay("a relay restarts", 8, func(_ *happening, relay *sim.Cluster) func() {
		relay.API.Restart()
		return nil
	}),
	ofRelay("a relay compacts", 4, func(_ *happening, relay *sim.Cluster) func() {
		relay.API.Compact()
		return nil
	}),
	ofRelay("a relay is restored from a backup", 12, func(_ *happening, relay *sim.Cluster) func() {
		backup := relay.API.Backup()
		return func() { relay.API.Restore(backup) }
	}),
	toRelay("cut from a relay", 12, func(n *network.Network, from, to string, random *rand.Rand) {
		n.Cut(from, to, network.Direction(1+random.IntN(3)))
	}),
	toRelay("refused by a relay", 6, func(n *network.Network, from, to string, _ *rand.Rand) { n.Refuse(from, to) }),
	toRelay("far from a relay", 5, func(n *network.Network, from, to string, random *rand.Rand) {
		delay := time.Duration(random.Int64N(int64(2 * time.Second)))
		n.Delay(from, to, delay, delay)
	}),
	toRelay("packets to and from a relay are lost", 6, func(n *network.Network, from, to string, random *rand.Rand) {
		n.Lose(from, to, random.Float64()/2)
	}),
	toRelay("half-open connections to a relay", 6, func(n *network.Network, from, to string, random *rand.Rand) {
		n.Forget(from, to, network.Direction(1+random.IntN(3)))
	}),
	lies("a relay has empty lists", 6, apiserver.Empty),
	lies("a relay has no records", 6, apiserver.EmptyOf("configmaps")),
	lies("a relay shows no change of a record", 6, func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
		if req.URL.Query().Get("watch") != "" && strings.HasSuffix(req.URL.Path, "/configmaps") {
			return apiserver.Hang(req, serve)
		}
		return serve(req)
	}),
	ofRelay("a mailbox is written by another", 16, tamper),
	{
		kind: "cut off from all relays", weight: 8, silences: true, targets: theRelays, ways: betweenAll,
		begin: func(h *happening) func() {
			for _, relay := range h.run.relays {
				h.run.network.Cut(h.c.Name, relay.Name, network.Both)
			}
			return func() {
				for _, relay := range h.run.relays {
					h.run.network.Restore(h.c.Name, relay.Name)
				}
			}
		},
	},
	{
		kind: "all relays are killed", weight: 6, silences: true, targets: theRelays, ways: betweenEach,
		begin: func(h *happening) func() {
			for _, relay := range h.run.relays {
				relay.StopAPI()
			}
			return func() {
				for _, relay := range h.run.relays {
					relay.StartAPI()
				}
			}
		},
	},
}

// betweenEach are the ways between all clusters.
func betweenEach(h *happening) (ways []judge.Way) {
	for _, from := range h.run.names {
		for _, to := range h.run.names {
			if from != to {
				ways = append(ways, judge.Way{From: from, To: to})
			}
		}
	}
	return ways
}

// tamper changes a mailbox as a thief of its credential could: records are deleted, damaged, or those of another one.
func tamper(h *happening, relay *sim.Cluster) func() {
	namespace := h.c.Mailbox()
	records := relay.Kube.CoreV1().ConfigMaps(namespace)
	list, err := records.List(context.Background(), metav1.ListOptions{})
	h.c.must(err)
	if len(list.Items) == 0 {
		h.told += "nothing: the mailbox is empty"
		return nil
	}
	victim := &list.Items[h.random.IntN(len(list.Items))]
	ignoreConflict := func(err error) {
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			h.c.must(err)
		}
	}
	switch h.random.IntN(4) {
	case 0:
		h.told += "a record is deleted"
		ignoreConflict(records.Delete(context.Background(), victim.Name, metav1.DeleteOptions{}))
	case 1:
		h.told += "all records are deleted"
		ignoreConflict(records.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	case 2:
		h.told += "a record is damaged"
		for key := range victim.BinaryData {
			victim.BinaryData[key][len(victim.BinaryData[key])/2] ^= 1
		}
		_, err = records.Update(context.Background(), victim, metav1.UpdateOptions{})
		ignoreConflict(err)
	default:
		h.told += "it gets a record of " + h.other.Name
		theirs, err := relay.Kube.CoreV1().ConfigMaps(h.other.Mailbox()).List(context.Background(), metav1.ListOptions{})
		h.c.must(err)
		for i := range theirs.Items[:min(1, len(theirs.Items))] {
			theirs.Items[i].Namespace, theirs.Items[i].ResourceVersion, theirs.Items[i].UID = namespace, "", ""
			_, err = records.Create(context.Background(), &theirs.Items[i], metav1.CreateOptions{})
			ignoreConflict(err)
		}
	}
	h.Lasts = repaired
	return func() {}
}

// repaired is when the cluster has read its mailbox again, and written what differs: until then the other relay is
// whole.
const repaired = 130 * time.Second

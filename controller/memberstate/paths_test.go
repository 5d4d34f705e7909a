// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

var (
	ofWest  = []canary.Canary{{Address: netip.MustParseAddrPort("10.1.0.1:8081"), Zone: "a"}, {Address: netip.MustParseAddrPort("10.1.0.2:8081"), Zone: "b"}}
	ofNorth = []canary.Canary{{Address: netip.MustParseAddrPort("10.2.0.1:8081"), Zone: "a"}}
)

// probe probes each canary of a member once a second.
func (l *lookout) probe(seconds int, outcome liveness.Outcome, cluster string, canaries []canary.Canary) {
	for range seconds {
		l.now.Step(time.Second)
		for _, each := range canaries {
			l.Probed(liveness.Probe{
				Cluster: cluster, Canary: each.Address.String(), Began: l.now.Now(), Ended: l.now.Now(), Outcome: outcome,
			})
		}
	}
}

// TestTrackerPath: from reachable to unreachable and back, with the Events, and what the next leader restores.
func TestTrackerPath(t *testing.T) {
	l := newLookout(t, nil, "west")
	events := record.NewFakeRecorder(10)
	l.reporter.Recorder = events
	l.pass(10, "west")
	l.Offer("west", ofWest)
	l.probe(1, liveness.Answered, "west", ofWest)
	l.expect(t, "west", "fresh Heard", "")
	left := l.lease("west").Annotations
	if left[PathAnnotation] != "reachable" || left[StateAnnotation] != "fresh" {
		t.Errorf("the Lease has %v", left)
	}
	clear(l.unshown)
	l.probe(2, liveness.Unanswered, "west", ofWest)
	l.expect(t, "west", "fresh Heard", "")
	l.probe(1, liveness.Unanswered, "west", ofWest)
	l.expect(t, "west", "stale PodsUnreachable demoted", "west")
	if event := <-events.Events; !strings.Contains(event, EventMemberStale) || !strings.Contains(event, "The pods of cluster") {
		t.Errorf("the Event is %q", event)
	}
	left = l.lease("west").Annotations
	if _, unshown := l.unshown["west"]; !unshown || left[PathAnnotation] != "unreachable" ||
		left[StateAnnotation] != "stale" {
		t.Errorf("the Lease has %v, and is written: %t", left, unshown)
	}
	if all := l.Canaries(); len(all) != 2 || !all[0].Cut || all[0].Zone != "a" || all[0].Cluster != "west" {
		t.Errorf("the canaries are %v", all)
	}

	next := newLookout(t, map[string]state{"west": {state: liveness.Stale, path: liveness.Unreachable}}, "west")
	next.pass(30, "west")
	next.expect(t, "west", "stale PodsUnreachable demoted", "west")
	next.Offer("west", ofWest)
	next.probe(3, liveness.Answered, "west", ofWest)
	next.expect(t, "west", "fresh Heard", "west")

	idle := newLookout(t, nil)
	idle.left = map[string]state{"west": {state: liveness.Stale, uid: "u", path: liveness.Unreachable}}
	idle.ForgetPaths()
	if idle.left["west"] != (state{state: liveness.Stale, uid: "u"}) {
		t.Errorf("a leader that does not probe takes over %v", idle.left)
	}

	l.Offer("west", nil)
	l.expect(t, "west", "fresh Heard", "west")
	if event := <-events.Events; !strings.Contains(event, EventMemberRecovered) {
		t.Errorf("the Event is %q", event)
	}
	if _, found := l.lease("west").Annotations[PathAnnotation]; found || l.Path("west") != liveness.PathUnknown {
		t.Error("without canaries it has a path")
	}
}

// TestTrackerCutMemberLeaves: the pods of a member are unreachable, and it leaves.
func TestTrackerCutMemberLeaves(t *testing.T) {
	l := newLookout(t, nil, "north", "west")
	events := record.NewFakeRecorder(10)
	l.reporter.Recorder = events
	l.pass(10, "north", "west")
	l.Offer("west", ofWest)
	l.Offer("north", ofNorth)
	l.probe(1, liveness.Answered, "west", ofWest)
	l.probe(1, liveness.Answered, "north", ofNorth)
	l.probe(5, liveness.Unanswered, "west", ofWest)
	l.expect(t, "west", "stale PodsUnreachable demoted", "west")
	if event := <-events.Events; !strings.Contains(event, EventMemberStale) {
		t.Errorf("the Event is %q", event)
	}
	l.probe(3, liveness.Answered, "west", ofWest)
	l.expect(t, "west", "fresh Heard", "west")
	if event := <-events.Events; !strings.Contains(event, EventMemberRecovered) {
		t.Errorf("the Event is %q", event)
	}
	l.Untrack("west")
	l.Probed(liveness.Probe{Cluster: "west", Canary: ofWest[0].Address.String()})
	if all := l.Canaries(); len(all) != 1 || l.Path("west") != liveness.PathUnknown {
		t.Errorf("of a member that left remain %v", all)
	}
}

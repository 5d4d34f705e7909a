// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/record"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

// A layer is a Layer that knows the path to one member: what PathAnnotation has.
type layer struct{ path string }

func (l *layer) Opinion(string) liveness.Opinion {
	if l.path == "unreachable" {
		return liveness.Opinion{State: liveness.Stale, Reason: liveness.PodsUnreachable}
	}
	return liveness.Opinion{}
}
func (l *layer) Memory(string) string     { return l.path }
func (l *layer) Restore(_, memory string) { l.path = memory }
func (l *layer) Witnesses() []Witness     { return []Witness{{Cluster: "west"}} }

// TestLayer: the opinion of a layer counts at once, with its Events, and the next leader gets what it knew.
func TestLayer(t *testing.T) {
	l, paths := newLookout(t, nil, "west"), &layer{}
	if l.Path("west") != "unknown" || l.Witnesses() != nil {
		t.Error("without a layer it has a path")
	}
	l.SetLayer(paths)
	events := record.NewFakeRecorder(10)
	l.reporter.Recorder = events
	l.pass(10, "west")
	becomes := func(path string) {
		l.drain()
		paths.path = path
		l.Reconsider("west")
		if unshown := l.unshown.Len() == 1; !unshown || l.lease("west").Annotations[PathAnnotation] != path ||
			l.Path("west") != path || len(l.Witnesses()) != 1 {
			t.Errorf("it is %s, and the Lease has %v, and is written: %t", path, l.lease("west").Annotations, unshown)
		}
	}
	becomes("reachable")
	l.expect(t, "west", "fresh Heard", "")
	becomes("unreachable")
	l.expect(t, "west", "stale PodsUnreachable demoted", "west")
	if event := <-events.Events; !strings.Contains(event, EventMemberStale) || !strings.Contains(event, "The pods of cluster") {
		t.Errorf("the Event is %q", event)
	}
	if state := l.lease("west").Annotations[StateAnnotation]; state != "stale" {
		t.Errorf("the Lease has %s", state)
	}
	becomes("reachable")
	l.expect(t, "west", "fresh Heard", "west")
	if event := <-events.Events; !strings.Contains(event, EventMemberRecovered) {
		t.Errorf("the Event is %q", event)
	}
	paths.path = ""
	l.Reconsider("west")
	if _, found := l.lease("west").Annotations[PathAnnotation]; found || l.Path("west") != "unknown" {
		t.Error("without canaries it has a path")
	}

	next := newLookout(t, nil)
	next.left = map[string]memory{"west": {StateAnnotation: "stale", PathAnnotation: "unreachable"}}
	next.SetLayer(paths)
	next.Track(l.members["west"].source)
	next.pass(30, "west")
	next.expect(t, "west", "stale PodsUnreachable demoted", "west")
}

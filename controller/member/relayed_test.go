// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// readOn has a member read its paths until the test ends.
func readOn(t *testing.T, m *Member, paths *paths) {
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.follow(ctx, paths) }()
	t.Cleanup(func() {
		leave()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// eventually waits for a state.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("not: %s", what)
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // polls for a state of real servers
	}
}

// addresses are those of the services of a member.
func addresses(m *Member) map[string]string {
	all := map[string]string{}
	for _, service := range m.Services() {
		for _, slice := range m.Slices(service) {
			for _, endpoint := range slice.Endpoints {
				all[slice.Name] = endpoint.Addresses[0]
			}
		}
	}
	return all
}

func aMember(now clock.WithTicker) *Member {
	m := newMember("west", now, func(types.NamespacedName) {}, func() {}, func(error) {})
	m.source = parse(&Candidate{Cluster: "west", Kind: kindFlag}, nil)
	return m
}

// TestReadingThroughARelay: what the source publishes arrives, its end only with a heartbeat, and a heartbeat only with
// all that it vouches for.
func TestReadingThroughARelay(t *testing.T) {
	now := time.Unix(1e9, 0)
	relay := newRelay(t, 1)
	relay.publish("one", "web", "10.0.0.1")
	relay.publish("two", "db", "10.0.0.2")
	m := aMember(clock.RealClock{})
	readOn(t, m, newPaths([]path{relay.path("hub")}))
	eventually(t, "the relay is asked", func() bool {
		relay.mu.Lock()
		defer relay.mu.Unlock()
		return len(relay.watches) > 0
	})
	relay.beat(now)
	eventually(t, "the list counts", m.Synced)
	if got, want := addresses(m), map[string]string{"one": "10.0.0.1", "two": "10.0.0.2"}; !maps.Equal(got, want) {
		t.Fatalf("has %v, want %v", got, want)
	}
	if heard := m.Heartbeat(); heard.KubeSystemUID != "uid-west" || heard.Cluster != "west" {
		t.Errorf("heard %v", heard)
	}
	eventually(t, "the records are watched", func() bool {
		relay.mu.Lock()
		defer relay.mu.Unlock()
		return slices.Contains(slices.Collect(maps.Values(relay.watches)), true)
	})
	relay.publish("one", "web", "10.0.0.9")
	eventually(t, "a change", func() bool { return addresses(m)["one"] == "10.0.0.9" })
	relay.withdraw("two", false) // the relay alone
	relay.publish("three", "web", "10.0.0.3")
	eventually(t, "another change", func() bool { return addresses(m)["three"] != "" })
	before := m.Heard()
	relay.beat(now.Add(5 * time.Second))
	if heard := m.Heartbeat().Heard; addresses(m)["two"] == "" {
		t.Fatalf("the relay removes a slice at %s", heard)
	}
	relay.publish("two", "db", "10.0.0.2")
	relay.withdraw("two", true)
	relay.beat(now.Add(10 * time.Second))
	eventually(t, "the end of a slice", func() bool { return addresses(m)["two"] == "" })
	if heard := m.Heard(); heard == before || heard == "" {
		t.Errorf("heard %q, before %q", heard, before)
	}
	if problem := m.Problem(); problem != nil {
		t.Error(problem)
	}
	relay.mu.Lock()
	defer relay.mu.Unlock()
	for _, request := range relay.requests {
		switch request {
		case "/api/v1/namespaces/clusterset-relay-west/configmaps " + mailbox.Selector(west):
		case "/apis/coordination.k8s.io/v1/namespaces/clusterset-relay-west/leases metadata.name=clusterset-dns-heartbeat":
		default:
			t.Errorf("unexpected request: %s", request)
		}
	}
	if relay.lists != 1 {
		t.Errorf("%d lists", relay.lists)
	}
}

// TestAForgedMailbox: nothing counts that another key has signed, and the problem names the relay and what to compare.
func TestAForgedMailbox(t *testing.T) {
	relay := newRelay(t, 1)
	p := relay.path("hub")
	relay.key = keyOf(2)
	relay.publish("one", "web", "10.0.0.1")
	relay.beat(time.Unix(1e9, 0))
	m := aMember(clock.RealClock{})
	readOn(t, m, newPaths([]path{p}))
	eventually(t, "a problem", func() bool {
		problem := m.Problem()
		return problem != nil && strings.Contains(problem.Error(), "at relay hub: no public key") &&
			strings.Contains(problem.Error(), "public-keys")
	})
	if m.Synced() || !m.Heartbeat().Heard.IsZero() || len(m.Services()) > 0 {
		t.Error("something counts")
	}
}

// TestTheNextPath: the next relay is read once the first one is silent for two intervals, and no slice is dropped. The
// path in use is kept while it works.
func TestTheNextPath(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	first, second := newRelay(t, 1), newRelay(t, 1)
	for _, relay := range []*aRelay{first, second} {
		relay.publish("one", "web", "10.0.0.1")
		relay.beat(now.Now())
	}
	m := aMember(now)
	readOn(t, m, newPaths([]path{first.path("a"), second.path("b")}))
	eventually(t, "the list counts", m.Synced)
	eventually(t, "records and heartbeat are watched", func() bool { // what is beaten before is not delivered
		first.mu.Lock()
		defer first.mu.Unlock()
		of := slices.Collect(maps.Values(first.watches))
		return slices.Contains(of, true) && slices.Contains(of, false)
	})
	if got := m.Path(); got != "a" {
		t.Fatalf("reads %q", got)
	}
	for range 4 { // it works
		now.Step(HeartbeatInterval)
		first.beat(now.Now())
		eventually(t, "a heartbeat", func() bool { return m.Heartbeat().Heard.Equal(now.Now()) })
	}
	if got := m.Path(); got != "a" {
		t.Fatalf("leaves a path that works for %q", got)
	}
	first.mu.Lock()
	first.down = true
	first.mu.Unlock()
	first.server.CloseClientConnections()
	now.Step(silentFor - time.Millisecond)
	if got := m.Path(); got != "a" {
		t.Fatalf("leaves %q too early", got)
	}
	eventually(t, "the timer", now.HasWaiters)
	now.Step(time.Millisecond)
	eventually(t, "the other path", func() bool { return m.Path() == "b" })
	if len(addresses(m)) != 1 {
		t.Error("slices were dropped")
	}
	// What the relay has is older than what was heard: it counts only with the next heartbeat.
	eventually(t, "the heartbeat of the other relay is watched", func() bool {
		second.mu.Lock()
		defer second.mu.Unlock()
		return slices.Contains(slices.Collect(maps.Values(second.watches)), false)
	})
	second.mu.Lock()
	lists := second.lists
	second.mu.Unlock()
	if lists != 0 {
		t.Error("a relay that is behind is listed")
	}
	second.publish("one", "web", "10.0.0.7")
	second.beat(now.Now())
	eventually(t, "the other mailbox", func() bool { return addresses(m)["one"] == "10.0.0.7" })
	if !m.Heartbeat().Heard.Equal(now.Now()) {
		t.Error("its heartbeat does not count")
	}
}

// TestPathsChange: a relay that is removed is left at once, and one that is added is used.
func TestPathsChange(t *testing.T) {
	first, second := newRelay(t, 1), newRelay(t, 1)
	second.publish("one", "web", "10.0.0.1")
	second.beat(time.Unix(1e9, 0))
	m := aMember(clock.RealClock{})
	of := newPaths(nil)
	readOn(t, m, of)
	eventually(t, "a problem", func() bool {
		problem := m.Problem()
		return problem != nil && strings.Contains(problem.Error(), "no path to cluster west")
	})
	of.set([]path{first.path("a")})
	eventually(t, "the first path", func() bool { return m.Path() == "a" })
	of.set([]path{second.path("b")})
	eventually(t, "the second path", func() bool { return m.Path() == "b" && m.Synced() })
}

// TestASliceThatCannotBeDecoded: of a list, as of a watch, the last known content of such a slice stays.
func TestASliceThatCannotBeDecoded(t *testing.T) {
	now := time.Unix(1e9, 0)
	first, second := newRelay(t, 1), newRelay(t, 1)
	for _, relay := range []*aRelay{first, second} {
		relay.publish("one", "web", "10.0.0.1")
		relay.publish("two", "web", "10.0.0.2")
	}
	first.beat(now)
	m := aMember(clock.RealClock{})
	of := newPaths([]path{first.path("a")})
	readOn(t, m, of)
	eventually(t, "the list counts", m.Synced)
	second.mu.Lock()
	second.sign(slice("one", "web", "1"), "web", []byte("no slice"))
	second.mu.Unlock()
	second.publish("three", "web", "10.0.0.3")
	second.beat(now.Add(HeartbeatInterval))
	of.set([]path{second.path("b")})
	eventually(t, "the list of the other relay", func() bool { return addresses(m)["three"] != "" })
	want := map[string]string{"one": "10.0.0.1", "two": "10.0.0.2", "three": "10.0.0.3"}
	if got := addresses(m); !maps.Equal(got, want) {
		t.Errorf("has %v, want %v", got, want)
	}
	second.withdraw("one", true)
	second.beat(now.Add(2 * HeartbeatInterval))
	eventually(t, "its end", func() bool { return addresses(m)["one"] == "" })
}

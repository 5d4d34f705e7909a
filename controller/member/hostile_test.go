// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterset-dns/clusterset-dns/controller/relay/inbox"
	"github.com/clusterset-dns/clusterset-dns/controller/relay/mailbox"
)

// endlessMailbox is a mailbox whose list never ends: a second and a page of one record after the other.
type endlessMailbox struct {
	clock *clocktesting.FakeClock
	page  func(number int) corev1.ConfigMap
	pages int
}

func (e *endlessMailbox) List(context.Context, metav1.ListOptions) (*corev1.ConfigMapList, error) {
	if e.pages++; e.pages > 1000 {
		return nil, errors.New("1000 pages")
	}
	e.clock.Step(time.Second)
	list := &corev1.ConfigMapList{Items: []corev1.ConfigMap{e.page(e.pages)}}
	list.Continue = "more"
	return list, nil
}

func (e *endlessMailbox) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, errors.New("no watch")
}

// TestAnEndlessList: a relay holds the reader neither with records that the member did not sign nor with the same slice
// again and again, and neither is a sign that the path works.
func TestAnEndlessList(t *testing.T) {
	relay := newRelay(t, 1)
	relay.publish("one", "web", "10.0.0.1")
	var signed corev1.ConfigMap
	for _, record := range relay.records {
		signed = *record
	}
	start := time.Unix(1e9, 0)
	for name, test := range map[string]struct {
		page     func(int) corev1.ConfigMap
		progress int64
	}{
		"unsigned": {func(int) corev1.ConfigMap { return corev1.ConfigMap{} }, 0},
		"repeated": {func(int) corev1.ConfigMap { return signed }, start.Add(time.Second).UnixNano()},
		"both": {func(number int) corev1.ConfigMap {
			if number == 2 {
				return signed
			}
			return corev1.ConfigMap{}
		}, start.Add(2 * time.Second).UnixNano()},
	} {
		t.Run(name, func(t *testing.T) {
			now := clocktesting.NewFakeClock(start)
			m := aMember(now)
			m.slices.limits.Services, m.slices.limits.Endpoints = 2, 3
			r := &relayed{
				Member: m, path: relay.path("hub"), source: west,
				inbox: inbox.New[*discoveryv1.EndpointSlice, *coordinationv1.Lease](&m.hearing.Heard),
			}
			shown := &endlessMailbox{clock: now, page: test.page}
			if _, _, err := r.list(t.Context(), shown); err == nil ||
				!strings.Contains(err.Error(), "more than 5 records") {
				t.Errorf("error %v", err)
			}
			if shown.pages != 6 || m.progress.Load() != test.progress {
				t.Errorf("%d pages, progress %d, want 6 and %d", shown.pages, m.progress.Load(), test.progress)
			}
		})
	}
}

// TestWhatARelaySays: a relay cannot fill the log and Events.
func TestWhatARelaySays(t *testing.T) {
	r := &relayed{Member: aMember(clocktesting.NewFakeClock(time.Unix(1e9, 0)))}
	events := watch.NewFake()
	go events.Error(&metav1.Status{Message: strings.Repeat("x", 1<<20)})
	err := r.pass(t.Context(), events, new(string), nil)
	if err == nil || !strings.Contains(err.Error(), "the watch ended: xxx") || len(err.Error()) > 2048 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

// TestARemovedKey: a key is not trusted anymore once it is removed, whatever else is wrong. Keys that cannot be parsed
// change nothing.
func TestARemovedKey(t *testing.T) {
	one, both := publicKeys(t, keyOf(1)), publicKeys(t, keyOf(1), keyOf(2))
	of := func(keys, rank string) *source {
		made := secret("a", "west", 0, "")
		made.Data[mailbox.PublicKeysKey] = []byte(keys)
		made.Annotations = map[string]string{RankAnnotation: rank}
		return parse(ofSecret(made), nil)
	}
	for name, test := range map[string]struct {
		keys, rank string
		want       int
	}{
		"the last one":                         {"", "5", 0},
		"the last one, to an empty line":       {"\n", "5", 0},
		"one":                                  {one, "5", 1},
		"one, with another invalid annotation": {one, "first", 1},
		"keys that cannot be parsed":           {"x", "5", 2},
		"one that cannot be parsed of two":     {one + "x", "5", 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(both, "5")
			s.renew(of(test.keys, test.rank))
			if got := len(*s.signers.Load()); got != test.want {
				t.Errorf("%d keys are trusted, want %d", got, test.want)
			}
		})
	}
}

// TestHeardDirectly: what a leader read directly is what the next one knows, from the first heartbeat on.
func TestHeardDirectly(t *testing.T) {
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	m := aMember(now)
	signers, err := signersOf([]byte(publicKeys(t, keyOf(1))))
	if err != nil {
		t.Fatal(err)
	}
	m.source.signers.Store(&signers)
	key := signers[0].id
	if err := m.RestoreHeard(key + ":5"); err != nil {
		t.Fatal(err)
	}
	m.current.Store(&path{})
	relay := newRelay(t, 1)
	relay.beat(now.Now())
	if err := m.heartbeat.Update(relay.lease); err != nil {
		t.Fatal(err)
	}
	if got, want := m.Heard(), key+":5,direct/"+key+":1000000000000"; got != want {
		t.Errorf("heard %q, want %q", got, want)
	}
	if err := m.RestoreHeard(key + ":7"); err != nil { // late
		t.Fatal(err)
	}
	if got, want := m.Heard(), key+":7,direct/"+key+":1000000000000"; got != want {
		t.Errorf("heard %q, want %q", got, want)
	}
}

// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/probe"
)

// A lookout is a Tracker of members that are not read: the test plays their heartbeats and lists.
type lookout struct {
	*Tracker
	of      *member.Members
	now     *clocktesting.FakeClock
	secrets map[string]*corev1.Secret
	// exported has the known exports of each cluster, told the clusters to reconcile.
	exported map[string]string
	told     []string
	// properties, probe targets and exposed are the contents of heartbeats.
	properties       map[string]string
	targets, exposed string
}

// wasLed returns what a leader left about west.
func wasLed(annotations map[string]string) map[string]*coordinationv1.Lease {
	return map[string]*coordinationv1.Lease{"west": {ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}}
}

func newLookout(t testing.TB, left map[string]*coordinationv1.Lease, clusters ...string) *lookout {
	t.Helper()
	l := &lookout{
		now:      clocktesting.NewFakeClock(time.Unix(1e9, 0)),
		secrets:  map[string]*corev1.Secret{},
		exported: map[string]string{}, properties: map[string]string{},
	}
	l.Tracker = NewTracker(liveness.Limits{StaleAfter: 30 * time.Second, GoneAfter: time.Hour}, l.now, l.ServicesFrom,
		&Reporter{Recorder: &record.FakeRecorder{}})
	l.Handle(func(cluster string) { l.told = append(l.told, cluster) })
	maps.Copy(l.left, left)
	for _, cluster := range clusters {
		// Without a kubeconfig, it is a member that is not read.
		l.secrets[cluster] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name: cluster, UID: types.UID(cluster), Labels: map[string]string{member.ClusterLabel: cluster},
			Annotations: map[string]string{},
		}}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	l.of = member.New(member.Config{Cluster: "east", Local: l, Tracker: l, Report: l.Report, Clock: l.now})
	l.of.Handle(l)
	l.of.Join(ctx, nil)
	return l
}

// Verdict returns the verdict on a member.
func (l *lookout) Verdict(cluster string) liveness.Verdict { return l.Of(cluster).Verdict }

// annotate replaces the annotations of a member's Secret, which the members share.
func (l *lookout) annotate(cluster string, annotations map[string]string) {
	clear(l.secrets[cluster].Annotations)
	maps.Copy(l.secrets[cluster].Annotations, annotations)
}

// confine sets the ranges of the member west, unless they are empty.
func (l *lookout) confine(ranges string) {
	delete(l.secrets["west"].Annotations, member.CIDRsAnnotation)
	if ranges != "" {
		l.secrets["west"].Annotations[member.CIDRsAnnotation] = ranges
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	l.of.Join(ctx, nil)
}

// ServicesFrom returns what a cluster exported.
func (l *lookout) ServicesFrom(cluster string) map[types.NamespacedName]struct{} {
	known := map[types.NamespacedName]struct{}{}
	for _, service := range inDemo(l.exported[cluster]) {
		known[service] = struct{}{}
	}
	return known
}

func (l *lookout) Credentials() []*corev1.Secret {
	return slices.Collect(maps.Values(l.secrets))
}
func (l *lookout) Imported(string) map[types.NamespacedName]limits.Weight { return nil }
func (l *lookout) ServiceChanged(types.NamespacedName)                    {}
func (l *lookout) MemberChanged(string)                                   {}
func (l *lookout) Report(member.Problem)                                  {}

func inDemo(words string) (services []types.NamespacedName) {
	for _, name := range strings.Fields(words) {
		services = append(services, types.NamespacedName{Namespace: "demo", Name: name})
	}
	return services
}

// pass lets time go by, in which the clusters send heartbeats.
func (l *lookout) pass(seconds int, heard ...string) {
	for range seconds / 5 {
		l.now.Step(liveness.HeartbeatInterval)
		for _, cluster := range heard {
			l.hears(cluster, "uid-of-"+cluster, cluster)
		}
		l.tick()
	}
}

// hears reads a renewed heartbeat, with a UID and the id of a cluster.
func (l *lookout) hears(cluster, uid, holder string) {
	l.LeaseRead(l.of.Get(cluster), member.Heartbeat{
		KubeSystemUID: uid, Cluster: holder, Properties: l.properties[cluster],
		Targets: l.targets, ExposedTargets: l.exposed, LeaseUID: "key",
	}, true)
}

// lists plays a list of the cluster, or of one with another UID. No verdict may be read before the list is judged.
func (l *lookout) lists(t *testing.T, cluster, words string, another ...string) {
	t.Helper()
	shown := 0
	l.Listed(l.of.Get(cluster), append(another, "uid-of-"+cluster)[0], inDemo(words), func() {
		if shown++; l.mu.TryLock() {
			l.mu.Unlock()
			t.Error("a list becomes visible while nothing waits for its judgement")
		}
	})
	if shown != 1 {
		t.Errorf("a list became visible %d times", shown)
	}
}

// expect compares the verdict on a cluster, while no list becomes visible, and the clusters that were to be reconciled since
// the last call.
func (l *lookout) expect(t *testing.T, cluster, want, told string) {
	t.Helper()
	read := 0
	verdict := l.Read(cluster, func() {
		if read++; l.mu.TryLock() {
			l.mu.Unlock()
			t.Error("a list may become visible between the slices and the verdict")
		}
	})
	if read != 1 || verdict != l.Verdict(cluster) {
		t.Errorf("the slices are read %d times, with the verdict %+v", read, verdict)
	}
	got := verdict.State.String() + " " + string(verdict.Reason)
	if verdict.Demote {
		got += " demoted"
	}
	if verdict.Keep {
		got += " kept"
	}
	if got != want {
		t.Errorf("%s is %s, want %s", cluster, got, want)
	}
	slices.Sort(l.told)
	if again := strings.Join(slices.Compact(l.told), " "); again != told {
		t.Errorf("told of %q, want %q", again, told)
	}
	l.told = nil
}

// TestTrackerLostExports: a list without most of the known exports is not accepted until it is confirmed or complete again.
// TestJudge of controller/liveness has a list that stays incomplete. Heartbeats on an older connection do not confirm the list of another cluster
// at the same address.
func TestTrackerLostExports(t *testing.T) {
	l := newLookout(t, nil, "west")
	l.exported["west"] = "a b c d"
	l.pass(30, "west")
	for _, step := range []struct {
		name, list string // no list if it is -
		confirmed  string
		want, told string
	}{
		{"all", "a b c d", "", "fresh Alive", ""},
		{"one of four", "a", "", "stale ExportsLost demoted kept", "west"},
		{"all again", "a b c d", "", "fresh Alive", "west"},
		{"three of four", "a b c", "", "fresh Alive kept", "west"}, // until the next heartbeat shows whose list it is
		{"the next heartbeat", "-", "", "fresh Alive", "west"},
		{"one of four once more", "a", "", "stale ExportsLost demoted kept", "west"},
		{"something else is confirmed", "-", "something else", "stale ExportsLost demoted kept", ""},
		{"that list is confirmed", "-", "token", "fresh Alive", "west"},
		{"a later list", "a", "", "stale ExportsLost demoted kept", "west"}, // which was not confirmed
		{"all once more", "a b c d", "", "fresh Alive", "west"},
		{"another cluster", "a b c", "", "stale AnotherCluster demoted kept", "west"},
		{"a heartbeat of the former one", "-", "", "fresh Alive kept", "west"},
		{"its list", "a b c d", "", "fresh Alive", "west"},
	} {
		uid := "uid-of-west"
		if step.name == "another cluster" {
			uid = "uid-of-another"
			l.hears("west", uid, "west") // as read after the list
		}
		switch step.confirmed {
		case "token":
			l.annotate("west", map[string]string{AnnotationConfirm: l.Verdict("west").Token})
		case "something else":
			l.annotate("west", map[string]string{AnnotationConfirm: step.confirmed})
		}
		if step.list == "-" {
			l.pass(5, "west")
		} else {
			l.lists(t, "west", step.list, uid)
		}
		l.expect(t, "west", step.want, step.told)
	}
}

// TestTargets: only probe targets that a member may offer are probed.
func TestTargets(t *testing.T) {
	l, logged := newLookout(t, nil, "west"), 0
	l.reporter.Logger = funcr.New(func(string, string) { logged++ }, funcr.Options{})
	expect := func(what, want string) {
		t.Helper()
		l.tick()
		var got []string
		for _, each := range l.Requests() {
			if got = append(got, each.Address.String()); each.Cluster != "west" || each.Key != "key" {
				t.Errorf("%s: %+v is probed", what, each)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v are probed, want %s", what, got, want)
		}
	}
	l.targets, l.exposed = "10.2.0.1:8081,10.1.0.1:8081", "192.0.2.1:30000"
	l.DecodeTargets = probe.Decode
	l.confine("0.0.0.0/0")
	expect("nothing was read", "")
	l.confine("")
	l.pass(5, "west")
	expect("its ranges are unknown", "")
	l.confine("0.0.0.0/0")
	expect("two targets", "10.1.0.1:8081 10.2.0.1:8081")
	l.confine("10.2.0.0/16")
	expect("it is confined", "10.2.0.1:8081")
	l.targets = ""
	l.pass(5, "west")
	expect("it has none for a moment", "")
	l.targets = "10.2.0.1:22"
	l.pass(10, "west")
	if expect("it is invalid", ""); logged != 1 {
		t.Errorf("an invalid target is logged %d times", logged)
	}
	l.targets = "10.2.0.2:8081"
	l.pass(5, "west")
	expect("it is valid", "10.2.0.2:8081")
	l.confine("0.0.0.0/0")
	l.SetLocal("", "another")
	expect("it is in another network", "192.0.2.1:30000")
	l.DecodeTargets = nil
	l.Untrack("west")
	l.Track(l.of.Get("west"))
	l.pass(5, "west")
	expect("nobody probes", "")
}

// TestFormerConnections: late results from a member that left, or with a former credential, are ignored.
func TestFormerConnections(t *testing.T) {
	l := newLookout(t, nil, "north", "west")
	l.exported["north"], l.exported["west"] = "a", "a"
	l.pass(60, "north", "west")
	l.told = nil
	l.Untrack("north")
	l.Track(newLookout(t, nil, "west").of.Get("west"))
	for cluster, want := range map[string]string{"north": "fresh Joining", "west": "fresh Alive"} {
		l.Listed(l.of.Get(cluster), "x", nil, func() { t.Errorf("a list of %s becomes visible", cluster) })
		l.hears(cluster, "x", cluster)
		l.expect(t, cluster, want, "")
	}
}

// TestTrackerKeepsARenamedCluster: a cluster that is started with another id withdraws all slices of its former id. Its exports
// stay until its slices are back, whichever way their withdrawal is seen. However long its heartbeats arrive, it is not
// accepted as the cluster of the credential, even if nothing was known of that.
func TestTrackerKeepsARenamedCluster(t *testing.T) {
	l := newLookout(t, nil, "north", "west", "south")
	l.exported["west"] = "a b"
	l.pass(60, "north", "west")
	l.told = nil
	renamed := func(holder string) {
		l.now.Step(liveness.HeartbeatInterval)
		l.hears("north", "uid-of-north", "north")
		l.hears("west", "uid-of-west", holder)
	}
	renamed("another")
	l.expect(t, "west", "stale ClusterIDMismatch demoted kept", "west")
	l.lists(t, "west", "")
	for range 120 {
		renamed("another")
		l.hears("south", "uid-of-north", "north")
	}
	l.expect(t, "west", "stale ClusterIDMismatch demoted kept", "south")
	l.expect(t, "south", "stale ClusterIDMismatch demoted kept", "")
	renamed("west")
	l.expect(t, "west", "fresh Alive kept", "west") // the slices are on their way
	l.hears("south", "uid-of-south", "south")
	renamed("west")
	l.hears("south", "uid-of-south", "south")
	l.expect(t, "west", "fresh Alive", "south west")
	l.expect(t, "south", "fresh Alive", "")
}

// TestRecalledPath: a path that the previous leader recorded counts only if this one probes, which corrects it.
func TestRecalledPath(t *testing.T) {
	l := newLookout(t, nil)
	for _, want := range []string{"unknown", "unreachable"} {
		l.left = wasLed(map[string]string{PathAnnotation: "unreachable"})
		if is := l.recall(l.now.Now(), "west"); is.Path.String() != want {
			t.Errorf("the path is %s, want %s", is.Path, want)
		}
		l.DecodeTargets = probe.Decode
	}
}

// TestFrozenProcess: time in which the process did not listen removes no member, nor does time that did not pass.
func TestFrozenProcess(t *testing.T) {
	l := newLookout(t, nil, "west")
	l.now.Step(time.Second)
	if l.tick(); l.members["west"].Arrivals.Missed > time.Second {
		t.Errorf("after a second, %s were missed", l.members["west"].Arrivals.Missed)
	}
	l.pass(60, "west")
	l.now.Step(2 * time.Hour)
	l.tick()
	l.told = nil
	l.expect(t, "west", "stale NoHeartbeat demoted", "")
}

// TestMoreExportsAreLost: what accepts a loss of exports, a confirmation or time, accepts no larger one.
func TestMoreExportsAreLost(t *testing.T) {
	for name, confirmed := range map[string]bool{"confirmed": true, "waited": false} {
		l, events := newLookout(t, nil, "west"), record.NewFakeRecorder(10)
		l.reporter.Recorder = events
		l.exported["west"] = "a b c d"
		l.pass(30, "west")
		l.lists(t, "west", "a b c d")
		l.lists(t, "west", "a")
		token := l.Verdict("west").Token
		l.pass(295, "west")
		for len(events.Events) > 0 {
			<-events.Events
		}
		l.lists(t, "west", "")
		if is := l.Verdict("west"); len(events.Events) != 1 || !strings.Contains(<-events.Events, is.Token) {
			t.Errorf("%s: no Event names %s", name, is.Token)
		}
		if confirmed {
			l.annotate("west", map[string]string{AnnotationConfirm: token})
		}
		l.pass(10, "west")
		if is := l.Verdict("west"); !is.Keep {
			t.Errorf("%s: the loss of all exports is accepted: %+v", name, is)
		}
	}
}

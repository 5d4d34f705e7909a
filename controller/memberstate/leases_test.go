// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestForeignLease: a Lease that somebody else made stays as it is, is told of
// once, says nothing of a member, and keeps no other from being written.
func TestForeignLease(t *testing.T) {
	theirs := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "system", Name: LeasePrefix + "north",
			Labels: map[string]string{"whose": "theirs", member.ClusterLabel: "north"},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("somebody")},
	}
	client := fake.NewClientset(theirs.DeepCopy())
	leases := client.CoordinationV1().Leases("system")
	s := NewTracker(liveness.Limits{}, clocktesting.NewFakeClock(time.Unix(1e9, 0)), nil, &Reporter{})
	told := 0
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, line string) {
		if strings.Contains(line, "north") {
			told++
		}
	}, funcr.Options{}))
	l := &Leases{client: client, namespace: "system", tracker: s}
	if left, err := l.load(ctx); err != nil || len(left) > 0 {
		t.Fatalf("got %v, %v", left, err)
	}
	for _, cluster := range []string{"north", "south", "west"} {
		known(s, liveness.Member{Cluster: cluster})
	}
	holder := func(ctx context.Context, cluster string) string {
		t.Helper()
		lease, err := leases.Get(ctx, LeasePrefix+cluster, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if ours := lease.Labels[export.LabelManagedBy] == export.Manager; ours !=
			(*lease.Spec.HolderIdentity == cluster) ||
			!ours && !maps.Equal(lease.Labels, theirs.Labels) {
			t.Errorf("the labels are %v", lease.Labels)
		}
		return *lease.Spec.HolderIdentity
	}
	for range 2 {
		if err := l.write(ctx); err != nil {
			t.Fatal(err)
		}
		if got := holder(ctx, "north") + " " + holder(ctx, "south") + " " +
			holder(ctx, "west"); got != "somebody south west" {
			t.Errorf("the holders are %s", got)
		}
	}
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
	s.Untrack("north") // it leaves
	if err := l.write(ctx); err != nil || holder(ctx, "north") != "somebody" {
		t.Errorf("got %v", err)
	}
	known(s, liveness.Member{Cluster: "north"})
	if err := l.write(ctx); err != nil || holder(ctx, "north") != "somebody" {
		t.Errorf("got %v", err)
	}
	if err := leases.Delete(ctx, theirs.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 3 { // whose turn it is
		if err := l.refresh(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if holder(ctx, "north") != "north" {
		t.Error("the Lease is not written once the other was deleted")
	}
}

// known makes a tracker know a member.
func known(s *Tracker, m liveness.Member) {
	s.members[m.Cluster] = &tracked{Member: m, verdict: liveness.Judge(s.clock.Now(), s.limits, m)}
	s.unshown[m.Cluster] = struct{}{}
}

// TestLeasesOfMembers: a Lease is written when something changed, and the time
// alone by enough and in turn; the next leader reads what it says.
func TestLeasesOfMembers(t *testing.T) {
	client := fake.NewClientset()
	leases := client.CoordinationV1().Leases("system")
	s := NewTracker(liveness.Limits{StaleAfter: 30 * time.Second}, clocktesting.NewFakeClock(time.Unix(1e9, 0)), nil,
		&Reporter{})
	heard := func(at time.Duration, uid string) liveness.Member {
		return liveness.Member{
			Cluster: "west", KnownUID: uid, Arrivals: liveness.Arrivals{Last: time.Unix(1e9, 0).Add(at)},
		}
	}
	l := &Leases{client: client, namespace: "system", tracker: s}
	if left, err := l.load(t.Context()); err != nil || len(left) > 0 {
		t.Fatalf("left are %v, %v", left, err)
	}
	requests := func(do func(context.Context) error, name string, want ...string) {
		t.Helper()
		client.ClearActions()
		if err := do(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, action := range client.Actions() {
			got = append(got, action.GetVerb())
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	known(s, liveness.Member{Cluster: "west"})
	requests(l.write, "it joins", "get", "create")
	requests(l.write, "nothing happens")
	requests(l.refresh, "nothing happens in its turn")
	known(s, heard(0, "1"))
	requests(l.write, "it is heard", "update")
	s.members["west"].Arrivals.Last = time.Unix(1e9+9, 0)
	requests(l.refresh, "again")
	s.members["west"].Arrivals.Last = time.Unix(1e9+10, 0)
	requests(l.write, "a heartbeat is no change")
	requests(l.refresh, "after a third of stale-after", "update")
	known(s, heard(10*time.Second, "2"))
	requests(l.write, "another cluster", "update")
	s.members["west"].Arrivals.Last = time.Unix(1e9+12, 0)
	s.unshown["west"] = struct{}{}
	s.members["west"].verdict.State = liveness.Stale
	requests(l.write, "it is stale", "update")
	s.members["west"].Arrivals.Last = time.Time{}
	s.unshown["west"] = struct{}{}
	requests(l.write, "nothing was heard by this process")

	lease, err := leases.Get(t.Context(), LeasePrefix+"west", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := lease.Spec.RenewTime.Time; !got.Equal(time.Unix(1e9+12, 0)) || *lease.Spec.HolderIdentity != "west" ||
		*lease.Spec.LeaseDurationSeconds != 30 {
		t.Errorf("the Lease is %v", lease.Spec)
	}
	next := &Leases{client: client, namespace: "system", tracker: s}
	left, err := next.load(t.Context())
	if err != nil || left["west"] != (state{state: liveness.Stale, uid: "2"}) {
		t.Errorf("the next leader reads %v, %v", left, err)
	}
	l = next
	requests(l.write, "the next leader")

	// Somebody changes it: it is read before the next try.
	lease.Annotations[StateAnnotation] = "gone"
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(coordinationv1.Resource("leases"), "west", nil)
	})
	known(s, heard(22*time.Second, "2"))
	if err := l.write(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	client.ReactionChain = client.ReactionChain[1:]
	requests(l.write, "after a conflict", "get", "update")

	s.Untrack("west")
	requests(l.write, "it leaves", "delete")
	requests(l.write, "it is gone")
	requests(l.refresh, "it has no turn any more")

	// One that left while nobody led.
	known(s, liveness.Member{Cluster: "west"})
	requests(l.write, "it is back", "get", "create")
	s.Untrack("west")
	s.takeUnshown(map[string]struct{}{})
	l = &Leases{client: client, namespace: "system", tracker: s}
	if _, err := l.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	requests(l.write, "it left unseen", "delete")
}

// TestLeasesOfManyMembers: at rest, however many members there are, one Lease is written at a time, and each has its
// turn.
func TestLeasesOfManyMembers(t *testing.T) {
	const members = 40
	client, now := fake.NewClientset(), clocktesting.NewFakeClock(time.Unix(1e9, 0))
	s := NewTracker(liveness.Limits{Interval: member.HeartbeatInterval, StaleAfter: 30 * time.Second}, now, nil,
		&Reporter{})
	l := &Leases{client: client, namespace: "system", tracker: s}
	if _, err := l.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range members {
		known(s, liveness.Member{Cluster: fmt.Sprint(i), Arrivals: liveness.Arrivals{Joined: now.Now()}})
	}
	if err := l.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	written := map[string]int{}
	for second := range 3 * members {
		now.Step(time.Second)
		for i := range members {
			if m := s.members[fmt.Sprint(i)]; second == 0 || i%5 == second%5 {
				m.Arrivals = m.Arrivals.Heard(now.Now(), "", s.limits)
			}
		}
		client.ClearActions()
		if err := errors.Join(l.write(t.Context()), l.refresh(t.Context())); err != nil {
			t.Fatal(err)
		}
		if requests := client.Actions(); len(requests) != 1 {
			t.Fatalf("after %d seconds: %d requests, want 1", second, len(requests))
		}
		update, ok := client.Actions()[0].(clienttesting.UpdateAction)
		if !ok {
			t.Fatalf("got %v", client.Actions()[0])
		}
		lease, ok := update.GetObject().(*coordinationv1.Lease)
		if !ok || *lease.Spec.LeaseDurationSeconds != 2*members {
			t.Fatalf("got %v", update.GetObject())
		}
		written[lease.Name]++
	}
	for name, times := range written {
		if times < 2 || len(written) != members {
			t.Errorf("%s of %d Leases was written %d times, want about 3", name, len(written), times)
		}
	}
}

// TestLeasesShowWhatIsJudged: the state and the time of the last heartbeat, once the state changes.
func TestLeasesShowWhatIsJudged(t *testing.T) {
	l := newLookout(t, nil, "north", "west")
	client := fake.NewClientset()
	leases := &Leases{client: client, namespace: "system", tracker: l.Tracker}
	if _, err := leases.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.pass(60, "north", "west")
	heard := l.now.Now()
	for _, want := range []liveness.State{liveness.Fresh, liveness.Stale} {
		if err := leases.write(t.Context()); err != nil {
			t.Fatal(err)
		}
		lease, err := client.CoordinationV1().Leases("system").Get(t.Context(), LeasePrefix+"west", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := lease.Annotations[StateAnnotation]; got != want.String() || !lease.Spec.RenewTime.Time.Equal(heard) ||
			lease.Annotations[member.HeartbeatUIDAnnotation] != "uid-of-west" {
			t.Errorf("%s: the Lease shows %v, %v", want, lease.Annotations, lease.Spec.RenewTime)
		}
		l.pass(10, "north", "west")
		heard = l.now.Now()
		l.pass(40, "north")
	}
}

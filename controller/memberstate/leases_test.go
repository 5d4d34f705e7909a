// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"context"
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
	s := NewTracker(liveness.Limits{}, clocktesting.NewFakeClock(time.Unix(1e9, 0)), nil, nil)
	for _, cluster := range []string{"north", "south", "west"} {
		s.members[cluster] = &tracked{Member: liveness.Member{Cluster: cluster}}
	}
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
	delete(s.members, "north") // it leaves
	if err := l.write(ctx); err != nil || holder(ctx, "north") != "somebody" {
		t.Errorf("got %v", err)
	}
	s.members["north"] = &tracked{Member: liveness.Member{Cluster: "north"}}
	if err := leases.Delete(ctx, theirs.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := l.write(ctx); err != nil || holder(ctx, "north") != "north" {
		t.Errorf("got %v once the Lease was deleted", err)
	}
}

// TestLeasesOfMembers: a Lease is written when something changed, and the time
// alone by enough; the next leader reads what it says.
func TestLeasesOfMembers(t *testing.T) {
	client := fake.NewClientset()
	leases := client.CoordinationV1().Leases("system")
	s := NewTracker(liveness.Limits{StaleAfter: 30 * time.Second}, clocktesting.NewFakeClock(time.Unix(1e9, 0)), nil,
		nil)
	heard := func(at time.Duration, uid string) {
		s.members["west"] = &tracked{Member: liveness.Member{
			Cluster: "west", KnownUID: uid, Arrivals: liveness.Arrivals{Last: time.Unix(1e9, 0).Add(at)},
		}}
	}
	l := &Leases{client: client, namespace: "system", tracker: s}
	if left, err := l.load(t.Context()); err != nil || len(left) > 0 {
		t.Fatalf("left are %v, %v", left, err)
	}
	writes := func(name string, want ...string) {
		t.Helper()
		client.ClearActions()
		if err := l.write(t.Context()); err != nil {
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
	s.members["west"] = &tracked{Member: liveness.Member{Cluster: "west"}}
	writes("it joins", "get", "create")
	writes("nothing happens")
	heard(0, "1")
	writes("it is heard", "update")
	heard(9*time.Second, "1")
	writes("again")
	heard(10*time.Second, "1")
	writes("after a third of stale-after", "update")
	heard(10*time.Second, "2")
	writes("another cluster", "update")
	s.judgement = liveness.Judgement{Members: []liveness.Verdict{{Cluster: "west", State: liveness.Stale}}}
	writes("it is stale", "update")
	s.members["west"] = &tracked{Member: liveness.Member{Cluster: "west", KnownUID: "2"}}
	writes("nothing was heard by this process")

	lease, err := leases.Get(t.Context(), LeasePrefix+"west", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := lease.Spec.RenewTime.Time; !got.Equal(time.Unix(1e9+10, 0)) || *lease.Spec.HolderIdentity != "west" ||
		*lease.Spec.LeaseDurationSeconds != 30 {
		t.Errorf("the Lease is %v", lease.Spec)
	}
	next := &Leases{client: client, namespace: "system", tracker: s}
	left, err := next.load(t.Context())
	if err != nil || left["west"] != (state{state: liveness.Stale, uid: "2"}) {
		t.Errorf("the next leader reads %v, %v", left, err)
	}
	l = next
	writes("the next leader")

	// Somebody changes it: it is read before the next try.
	lease.Annotations[StateAnnotation] = "gone"
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(coordinationv1.Resource("leases"), "west", nil)
	})
	heard(20*time.Second, "2")
	if err := l.write(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	client.ReactionChain = client.ReactionChain[1:]
	writes("after a conflict", "get", "update")

	delete(s.members, "west")
	writes("it leaves", "delete")
	writes("it is gone")
}

// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestForeignLease: a Lease that somebody else made stays as it is, says nothing of a member, and keeps no other from
// being written.
func TestForeignLease(t *testing.T) {
	theirs := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "system", Name: LeasePrefix + "north",
			Labels: map[string]string{"whose": "theirs", member.ClusterLabel: "north"},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("somebody")},
	}
	client := fake.NewClientset(theirs)
	leases := client.CoordinationV1().Leases("system")
	s := NewTracker(liveness.Limits{}, clocktesting.NewFakeClock(time.Unix(1e9, 0)), nil, &Reporter{})
	if _, err := s.Recall(t.Context(), leases); err != nil || len(s.left) > 0 {
		t.Fatalf("got %v, %v", s.left, err)
	}
	for _, step := range []struct {
		name    string
		do      func() error
		foreign bool
		want    string // the holders of north, south and west, with * if the Lease is ours
	}{
		{"all join", func() error {
			for _, cluster := range []string{"north", "south", "west"} {
				known(s, liveness.Member{Cluster: cluster})
			}
			return nil
		}, true, "somebody south* west*"},
		{"another try", func() error { return nil }, true, "somebody south* west*"},
		{"it leaves", func() error { s.Untrack("north"); return nil }, false, "somebody south* west*"},
		{"it is back", func() error { known(s, liveness.Member{Cluster: "north"}); return nil }, true, "somebody south* west*"},
		{"the other Lease is deleted", func() error {
			return leases.Delete(t.Context(), theirs.Name, metav1.DeleteOptions{})
		}, false, "north* south* west*"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if err := s.writeLeases(t.Context()); errors.Is(err, errForeignLease) != step.foreign || !step.foreign && err != nil {
			t.Errorf("%s: got %v", step.name, err)
		}
		var holders []string
		for _, cluster := range []string{"north", "south", "west"} {
			lease, err := leases.Get(t.Context(), LeasePrefix+cluster, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			holder := *lease.Spec.HolderIdentity
			if lease.Labels[export.LabelManagedBy] == export.Manager {
				holder += "*"
			}
			if holders = append(holders, holder); holder == "somebody" && !maps.Equal(lease.Labels, theirs.Labels) {
				t.Errorf("%s: its labels are %v", step.name, lease.Labels)
			}
		}
		if got := strings.Join(holders, " "); got != step.want {
			t.Errorf("%s: the holders are %s, want %s", step.name, got, step.want)
		}
	}
}

// known makes a tracker know a member.
func known(s *Tracker, m liveness.Member) {
	s.members[m.Cluster] = &Member{Member: m, Verdict: liveness.Judge(s.clock.Now(), s.limits, m)}
}

// TestLeasesOfMembers: a Lease is written when something changed, and the next leader reads what it says.
func TestLeasesOfMembers(t *testing.T) {
	client := fake.NewClientset()
	leases := client.CoordinationV1().Leases("system")
	now := clocktesting.NewFakeClock(time.Unix(1e9, 0))
	s := NewTracker(liveness.Limits{StaleAfter: 30 * time.Second}, now, nil, &Reporter{})
	heard := func(at time.Duration, uid string) liveness.Member {
		return liveness.Member{
			Cluster: "west", KnownUID: uid, Arrivals: liveness.Arrivals{Last: time.Unix(1e9, 0).Add(at)},
		}
	}
	if _, err := s.Recall(t.Context(), leases); err != nil || len(s.left) > 0 {
		t.Fatalf("left are %v, %v", s.left, err)
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
	requests(s.writeLeases, "it joins", "list", "create")
	requests(s.writeLeases, "it joined", "list")
	requests(s.writeLeases, "nothing happens")
	known(s, heard(0, "1"))
	requests(s.writeLeases, "it is heard", "list", "update")
	known(s, heard(10*time.Second, "1"))
	requests(s.writeLeases, "a heartbeat is no change", "list")
	requests(s.writeLeases, "nor does anything else change")
	known(s, heard(10*time.Second, "2"))
	requests(s.writeLeases, "another cluster", "list", "update")
	s.members["west"].Verdict.State = liveness.Stale
	requests(s.writeLeases, "it is stale", "list", "update")
	known(s, heard(10*time.Second, "2"))
	requests(s.writeLeases, "it is fresh again at once", "list", "update")
	s.members["west"].Verdict.State = liveness.Stale
	requests(s.writeLeases, "and stale", "list", "update")

	lease, err := leases.Get(t.Context(), LeasePrefix+"west", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *lease.Spec.HolderIdentity != "west" {
		t.Errorf("the Lease is %v", lease.Spec)
	}
	if _, err := s.Recall(t.Context(), leases); err != nil || !maps.Equal(s.left["west"], memory{StateAnnotation: "stale", member.HeartbeatUIDAnnotation: "2"}) {
		t.Errorf("the next leader reads %v, %v", s.left, err)
	}
	requests(s.writeLeases, "the next leader")

	// Somebody changes it, which is seen within a minute.
	lease.Labels[member.ClusterLabel] = "north"
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	requests(s.writeLeases, "it is not seen yet")
	now.Step(leasesListed)
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(coordinationv1.Resource("leases"), "west", nil)
	})
	if err := s.writeLeases(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	client.ReactionChain = client.ReactionChain[1:]
	requests(s.writeLeases, "after a conflict", "list", "update")

	s.Untrack("west")
	requests(s.writeLeases, "it leaves", "list", "delete")
	requests(s.writeLeases, "it left", "list")
	requests(s.writeLeases, "it is gone")

	// One that left while nobody led: if it joins again, it is new.
	known(s, liveness.Member{Cluster: "west"})
	requests(s.writeLeases, "it is back", "list", "create")
	s = NewTracker(liveness.Limits{}, s.clock, nil, &Reporter{})
	if _, err := s.Recall(t.Context(), leases); err != nil || len(s.left) != 1 {
		t.Fatalf("left are %v, %v", s.left, err)
	}
	run := func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		stop()
		s.Run(ctx)
		return nil
	}
	if requests(run, "it left unseen", "list", "delete"); len(s.left) > 0 {
		t.Errorf("%v is left for members to come", s.left)
	}
}

// TestLeaseTellsOfACredentialThatWorks: the first heartbeat since a credential changed is what `kubectl clusterset join`
// waits for, and the others write nothing.
func TestLeaseTellsOfACredentialThatWorks(t *testing.T) {
	client := fake.NewClientset()
	leases := client.CoordinationV1().Leases("system")
	s := newLookout(t, nil, "west")
	s.now.Step(123) // ns, which the API does not keep
	if _, err := s.Recall(t.Context(), leases); err != nil {
		t.Fatal(err)
	}
	joined := s.now.Now()
	for _, step := range []struct {
		name string
		do   func()
		want time.Duration // 0 if it has none
		// writes is how many requests write the Lease.
		writes int
	}{
		{"it joined", func() {}, 0, 1},
		{"an old heartbeat is read", func() { s.LeaseRead(s.of.Get("west"), member.Heartbeat{KubeSystemUID: "1"}, false) }, 0, 1}, // its UID
		{"it is heard", func() { s.pass(5, "west") }, 5 * time.Second, 1},
		{"it is heard again", func() { s.pass(5, "west") }, 5 * time.Second, 0},
		{"its credential changes", func() { s.Track(s.of.Get("west")) }, 5 * time.Second, 0},
		{"the new one works", func() { s.pass(5, "west") }, 15 * time.Second, 1},
	} {
		step.do()
		client.ClearActions()
		if err := s.writeLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		writes := 0
		for _, action := range client.Actions() {
			if action.GetVerb() != "list" {
				writes++
			}
		}
		lease, err := leases.Get(t.Context(), LeasePrefix+"west", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := time.Duration(0)
		if lease.Spec.RenewTime != nil {
			got = lease.Spec.RenewTime.Sub(joined.Truncate(time.Microsecond))
		}
		if got != step.want || writes != step.writes {
			t.Errorf("%s: the first heartbeat arrived after %v, with %d writes; want %v, %d", step.name, got, writes, step.want,
				step.writes)
		}
	}
	if before, err := s.Recall(t.Context(), leases); err != nil || len(before) != 1 || before[0].Cluster != "west" {
		t.Errorf("the next leader knows the members %v: %v", before, err)
	}
}

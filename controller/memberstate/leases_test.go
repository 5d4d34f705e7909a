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
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// A display is a lookout whose Leases are written.
type display struct {
	*lookout
	client *fake.Clientset
	leases coordinationclient.LeaseInterface
	before []*member.Candidate
}

// display returns a display that recalls the Leases of the previous leader.
func (l *lookout) display(t *testing.T, client *fake.Clientset) *display {
	t.Helper()
	d := &display{lookout: l, client: client, leases: client.CoordinationV1().Leases("system")}
	var err error
	if d.before, err = l.Recall(t.Context(), d.client.CoordinationV1(), "system"); err != nil {
		t.Fatal(err)
	}
	return d
}

// lease returns the Lease of a member.
func (d *display) lease(t *testing.T, cluster string) *coordinationv1.Lease {
	t.Helper()
	lease, err := d.leases.Get(t.Context(), LeasePrefix+cluster, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// requests asserts which requests do sends.
func (d *display) requests(t *testing.T, name, want string, do func(context.Context) error) {
	t.Helper()
	d.client.ClearActions()
	if err := do(t.Context()); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	var got []string
	for _, action := range d.client.Actions() {
		got = append(got, action.GetVerb())
	}
	if strings.Join(got, " ") != want {
		t.Errorf("%s: got %v, want %s", name, got, want)
	}
}

// TestForeignLease: a Lease that another writer created stays as it is, is not recalled, and does not prevent other Leases from
// being written.
func TestForeignLease(t *testing.T) {
	theirs := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "system", Name: LeasePrefix + "north",
			Labels: map[string]string{"whose": "theirs", member.ClusterLabel: "north"},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("somebody")},
	}
	d := newLookout(t, nil, "north", "south", "west").display(t, fake.NewClientset(theirs))
	if len(d.left)+len(d.before) > 0 {
		t.Fatalf("got %v, %v", d.left, d.before)
	}
	for _, step := range []struct {
		name    string
		do      func() error
		foreign bool
		want    string // the holders of north, south and west, with * if the Lease is ours
	}{
		{"all joined", func() error { return nil }, true, "somebody south* west*"},
		{"another try", func() error { return nil }, true, "somebody south* west*"},
		{"it leaves", func() error { d.Untrack("north"); return nil }, false, "somebody south* west*"},
		{"it is back", func() error { d.Track(d.of.Get("north")); return nil }, true, "somebody south* west*"},
		{"the other Lease is deleted", func() error {
			return d.leases.Delete(t.Context(), theirs.Name, metav1.DeleteOptions{})
		}, false, "north* south* west*"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if err := d.writeLeases(t.Context()); errors.Is(err, errForeignLease) != step.foreign || !step.foreign && err != nil {
			t.Errorf("%s: got %v", step.name, err)
		}
		var holders []string
		for _, cluster := range []string{"north", "south", "west"} {
			lease := d.lease(t, cluster)
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

// TestLeasesOfMembers: a Lease is written when something changed, and the next leader reads what it says. The first heartbeat
// since a credential changed is what `kubectl clusterset join` waits for.
func TestLeasesOfMembers(t *testing.T) {
	d := newLookout(t, nil, "west").display(t, fake.NewClientset())
	d.now.Step(123) // ns, which the API does not keep
	joined := d.now.Now()
	nothing := func() {}
	for _, step := range []struct {
		name     string
		do       func()
		requests string
		heard    time.Duration // since it joined, by the Lease; 0 for not yet
	}{
		{"it joins", nothing, "list create", 0},
		{"it joined", nothing, "list", 0},
		{"nothing happens", nothing, "", 0},
		{"an old heartbeat is read", func() { d.says("west", "") }, "list update", 0}, // its UID
		{"it is heard", func() { d.pass(5, "west") }, "list update", 5 * time.Second},
		{"a heartbeat is no change", func() { d.pass(5, "west") }, "list", 5 * time.Second},
		{"nor does anything else change", nothing, "", 5 * time.Second},
		{"its credential changes", func() { d.Track(d.of.Get("west")) }, "", 5 * time.Second},
		{"the new one works", func() { d.pass(5, "west") }, "list update", 15 * time.Second},
		{"another cluster is confirmed", func() {
			d.annotate("west", map[string]string{AnnotationConfirm: "2"})
			d.hears("west", "2", "west")
		}, "list update", 15 * time.Second},
		{"it is stale", func() { d.pass(30) }, "list update", 15 * time.Second},
		{"it is fresh again at once", func() { d.hears("west", "2", "west") }, "list update", 15 * time.Second},
		{"and stale", func() { d.pass(30) }, "list update", 15 * time.Second},
	} {
		step.do()
		d.requests(t, step.name, step.requests, d.writeLeases)
		heard, lease := time.Duration(0), d.lease(t, "west")
		if lease.Spec.RenewTime != nil {
			heard = lease.Spec.RenewTime.Sub(joined.Truncate(time.Microsecond))
		}
		if heard != step.heard || *lease.Spec.HolderIdentity != "west" {
			t.Errorf("%s: the first heartbeat arrived after %v, want %v; the Lease is %v", step.name, heard, step.heard, lease.Spec)
		}
	}
	before, err := d.Recall(t.Context(), d.client.CoordinationV1(), "system")
	if err != nil || len(before) != 1 || before[0].Cluster != "west" || !maps.Equal(d.left["west"], memory{
		StateAnnotation: "stale", member.HeartbeatUIDAnnotation: "2", OriginAnnotation: "- Secret west",
	}) {
		t.Errorf("the next leader reads %v, %v, %v", before, d.left, err)
	}
	d.requests(t, "the next leader", "", d.writeLeases)

	// Another writer changes the Lease, which is corrected within a minute.
	lease := d.lease(t, "west")
	lease.Labels[member.ClusterLabel] = "north"
	if _, err := d.leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	d.requests(t, "it is not seen yet", "", d.writeLeases)
	d.now.Step(leasesListed)
	d.client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(coordinationv1.Resource("leases"), "west", nil)
	})
	if err := d.writeLeases(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
	d.client.ReactionChain = d.client.ReactionChain[1:]
	d.requests(t, "after a conflict", "list update", d.writeLeases)

	d.Untrack("west")
	d.requests(t, "it leaves", "list delete", d.writeLeases)
	d.requests(t, "it left", "list", d.writeLeases)
	d.requests(t, "it is gone", "", d.writeLeases)

	// A member that left while there was no leader is new if it joins again.
	d.Track(d.of.Get("west"))
	d.requests(t, "it is back", "list create", d.writeLeases)
	next := newLookout(t, nil).display(t, d.client)
	if len(next.left) != 1 {
		t.Fatalf("left are %v", next.left)
	}
	next.requests(t, "it left unseen", "list delete", func(ctx context.Context) error {
		ctx, stop := context.WithCancel(ctx)
		stop()
		next.Run(ctx)
		return nil
	})
	if len(next.left) > 0 {
		t.Errorf("%v is left for members to come", next.left)
	}
}

// TestALabelOfAWebhook: the label that a webhook adds to each Lease causes no writes.
func TestALabelOfAWebhook(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if writes, ok := action.(clienttesting.CreateAction); ok { // updates, too
			writes.GetObject().(*coordinationv1.Lease).Labels["team"] = "network"
		}
		return false, nil, nil
	})
	d := newLookout(t, nil, "west").display(t, client)
	client.ClearActions()
	for range 10 {
		if err := d.writeLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.now.Step(time.Second)
	}
	if count := len(client.Actions()); count > 3 { // list, create, and list again
		t.Errorf("%d requests", count)
	}
}

// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
)

// TestForeignLease: a Lease that somebody else made stays as it is, is told of
// once, and keeps no other from being written.
func TestForeignLease(t *testing.T) {
	theirs := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: MemberLeasePrefix + "north", Labels: map[string]string{"whose": "theirs"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("somebody")},
	}
	client := fake.NewClientset(theirs.DeepCopy())
	leases := client.CoordinationV1().Leases("system")
	s := newSentinel(Options{}.limits(), clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	for _, cluster := range []string{"north", "south", "west"} {
		s.members[cluster] = &watched{Member: liveness.Member{Cluster: cluster}}
	}
	told := 0
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, line string) {
		if strings.Contains(line, "north") {
			told++
		}
	}, funcr.Options{}))
	l := &memberLeases{client: client, namespace: "system", sentinel: s}
	if _, err := l.load(ctx); err != nil {
		t.Fatal(err)
	}
	holder := func(ctx context.Context, cluster string) string {
		t.Helper()
		lease, err := leases.Get(ctx, MemberLeasePrefix+cluster, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if ours := lease.Labels[export.LabelManagedBy] == export.Manager; ours != (*lease.Spec.HolderIdentity == cluster) ||
			!ours && !maps.Equal(lease.Labels, theirs.Labels) {
			t.Errorf("the labels are %v", lease.Labels)
		}
		return *lease.Spec.HolderIdentity
	}
	for range 2 {
		if err := l.write(ctx); err != nil {
			t.Fatal(err)
		}
		if got := holder(ctx, "north") + " " + holder(ctx, "south") + " " + holder(ctx, "west"); got != "somebody south west" {
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
	s.members["north"] = &watched{Member: liveness.Member{Cluster: "north"}}
	if err := leases.Delete(ctx, theirs.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := l.write(ctx); err != nil || holder(ctx, "north") != "north" {
		t.Errorf("got %v once the Lease was deleted", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestDrain: a person takes the traffic away from a healthy cluster, and gives
// it back.
func TestDrain(t *testing.T) {
	b := newBed(t)
	b.annotate(b.west, controller.AnnotationDrain, "true")
	b.expect(westDemoted)
	b.judged(b.west, "Heard")
	// It is drained, and not silent: what it says counts.
	b.endpoints(b.west, "lone", "10.65.0.9")
	seen := westDemoted
	seen.lone = "west/10.65.0.9 -> 10.65.0.9"
	b.expect(seen)
	// Another value is no drain.
	b.annotate(b.west, controller.AnnotationDrain, "false")
	seen = healthy
	seen.lone = "west/10.65.0.9 -> 10.65.0.9"
	b.expect(seen)
	b.annotate(b.west, controller.AnnotationDrain, "")
	b.expect(seen)
}

// TestBothDrained: where there is nowhere else to go, nothing is taken away.
func TestBothDrained(t *testing.T) {
	b := newBed(t)
	b.annotate(b.west, controller.AnnotationDrain, "true")
	b.expect(westDemoted)
	b.annotate(b.north, controller.AnnotationDrain, "true")
	b.expect(healthy)
	b.annotate(b.north, controller.AnnotationDrain, "")
	b.expect(westDemoted)
}

// TestAnotherClusterUnderAnOldID: the UID that the heartbeat carries changes,
// and what was known is kept until a person says that it is so, or it was the
// same for a while.
func TestAnotherClusterUnderAnOldID(t *testing.T) {
	for _, byPerson := range []bool{true, false} {
		t.Run(fmt.Sprintf("confirmed by a person %v", byPerson), func(t *testing.T) {
			b := newBed(t)
			const uid = "3f0c8dd6-5f1e-4b7a-9d43-0d7a3c3f9d11"
			b.west.stop() // it would write its own UID again
			live := b.pairs(b.west)
			b.heartbeatOf(b.west, uid)
			b.judged(b.west, "AnotherCluster")
			b.expect(westDemoted)
			// What it says is not believed.
			b.must(b.west.mcs.MulticlusterV1beta1().ServiceExports(b.namespace).Delete(b.Context(), "solo", metav1.DeleteOptions{}))
			b.must(ignoreNotFound(b.west.DiscoveryV1().EndpointSlices(b.namespace).DeleteCollection(b.Context(), metav1.DeleteOptions{}, metav1.ListOptions{
				LabelSelector: "multicluster.kubernetes.io/source-cluster=west,multicluster.kubernetes.io/service-name=solo",
			})))
			b.heartbeatOf(b.west, uid)
			b.pass(4*time.Second, live...)
			b.expect(westDemoted)

			if byPerson {
				b.annotate(b.west, controller.AnnotationConfirm, "something else")
				b.expect(westDemoted)
				b.annotate(b.west, controller.AnnotationConfirm, uid)
			} else {
				for range 61 {
					b.pass(5*time.Second, live...)
					b.heartbeatOf(b.west, uid)
				}
			}
			b.judged(b.west, "Heard")
			want := healthy
			want.solo = "none -> NXDOMAIN"
			b.expect(want)
		})
	}
}

// heartbeatOf renews the heartbeat of a cluster in its controller's stead, and
// waits until east heard it.
func (b *bed) heartbeatOf(c *cluster, uid string) {
	b.Helper()
	b.eventually("heartbeat", func(ctx context.Context) error {
		leases := c.CoordinationV1().Leases(system)
		lease, err := leases.Get(ctx, member.HeartbeatLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, member.HeartbeatUIDAnnotation, uid)
		now := metav1.NowMicro()
		lease.Spec.RenewTime = &now
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	b.eventually("heartbeat heard", func(context.Context) error {
		age, err := pair{b.east, c}.age()
		if err == nil && age > 0 {
			err = fmt.Errorf("the last heartbeat is %s old", age)
		}
		return err
	})
}

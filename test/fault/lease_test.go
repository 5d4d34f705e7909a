// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestLease: Leases show and elect, and what a person does to them decides
// nothing for long.
func TestLease(t *testing.T) {
	b := newBed(t)
	b.fault("that of a member is edited and deleted", testLeaseOfAMemberByHand)
	b.fault("the heartbeat is edited and deleted", testHeartbeatByHand)
	b.fault("the leader is cut off from its API server", testLeaderIsCutOff)
	b.fault("the leader's is taken away", testLeaderLeaseByHand)
}

// editLease changes a Lease of a cluster.
func (b *bed) editLease(c *cluster, name string, change func(*coordinationv1.Lease)) {
	b.Helper()
	b.eventually("edit Lease "+name, func(ctx context.Context) error {
		lease, err := c.CoordinationV1().Leases(system).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(lease)
		_, err = c.CoordinationV1().Leases(system).Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
}

// testLeaseOfAMemberByHand: it is mended.
func testLeaseOfAMemberByHand(b *bed) {
	p := pair{b.east, b.west}
	name := controller.MemberLeasePrefix + b.west.Name()
	b.lease(p, "fresh")
	b.editLease(b.east, name, func(lease *coordinationv1.Lease) {
		lease.Annotations = map[string]string{controller.MemberStateAnnotation: "gone"}
		lease.Spec.RenewTime = nil
	})
	b.pass(20*time.Second, b.pairs()...)
	b.lease(p, "fresh")
	b.expect(healthy)

	b.must(b.east.CoordinationV1().Leases(system).Delete(b.Context(), name, metav1.DeleteOptions{}))
	b.pass(20*time.Second, b.pairs()...)
	b.lease(p, "fresh")
	b.expect(healthy)

	// A successor believes it until it hears the member: no more than what a
	// person can say by draining it.
	b.east.stop()
	b.editLease(b.east, name, func(lease *coordinationv1.Lease) {
		lease.Annotations[controller.MemberStateAnnotation] = "stale"
	})
	b.start(b.east)
	b.beat(b.pairs()...)
	b.lease(p, "fresh")
	b.expect(healthy)

	// It goes when the member leaves.
	b.mayGo([]string{"solo", "lone"}, b.east)
	b.leave(p)
	b.everywhere(healthy, map[*cluster]view{b.east: westGone})
	b.noLease(p)
}

// testHeartbeatByHand: whoever renews it, it is a sign of life; who it names is
// told until the controller has mended it.
func testHeartbeatByHand(b *bed) {
	p := pair{b.east, b.west}
	thief := "thief"
	b.editLease(b.west, member.HeartbeatLease, func(lease *coordinationv1.Lease) {
		lease.Spec.HolderIdentity = &thief
		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Unix(0, 0)}
	})
	b.event(p, controller.EventMemberMistaken)
	b.expect(healthy)
	b.pass(12*time.Second, b.pairs()...)
	b.event(p, controller.EventMemberRecognized)
	b.expect(healthy)

	b.must(b.west.CoordinationV1().Leases(system).Delete(b.Context(), member.HeartbeatLease, metav1.DeleteOptions{}))
	b.pass(24*time.Second, b.pairs()...)
	b.judged(p, "Heard")
	b.expect(healthy)
	b.calm()
}

// A breaker is what a program's requests go through until it is open.
type breaker struct {
	next http.RoundTripper
	open *atomic.Bool
}

func (r breaker) RoundTrip(request *http.Request) (*http.Response, error) {
	if r.open.Load() {
		return nil, errors.New("the way is cut")
	}
	return r.next.RoundTrip(request)
}

// replica is a controller of west that stands for election. open cuts it off from
// its API server; ended receives what it ended with.
type replica struct {
	cluster
	open  atomic.Bool
	ended chan error
}

// stand starts one.
func (b *bed) stand(identity string) *replica {
	b.Helper()
	r := &replica{cluster: *b.west, ended: make(chan error, 1)}
	r.options.Config = rest.CopyConfig(b.west.options.Config)
	r.options.Config.Wrap(transport.WrapperFunc(func(next http.RoundTripper) http.RoundTripper { return breaker{next, &r.open} }))
	r.options.Registry = prometheus.NewRegistry()
	r.options.LeaderElection, r.options.Identity = true, identity
	r.options.LeaseDuration, r.options.RenewDeadline, r.options.RetryPeriod = 3*time.Second, 2*time.Second, 200*time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ended <- controller.Run(ctx, r.options)
	}()
	b.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

// leads waits until the replica is the leader, and makes it the controller of
// west.
func (b *bed) leads(r *replica) {
	b.Helper()
	b.eventually(r.options.Identity+" leads", func(context.Context) error {
		metric, err := r.metric("clusterset_controller_leading", map[string]string{})
		if err == nil && metric.GetGauge().GetValue() != 1 {
			err = fmt.Errorf("it is %v", metric)
		}
		return err
	})
	b.west.options.Registry = r.options.Registry
	b.west.stop = func() { b.west.stop = nil } // Cleanup ends it
}

// lost waits until the replica leads no more. It goes on, and waits to lead again.
func (b *bed) lost(r *replica) {
	b.Helper()
	b.eventually(r.options.Identity+" leads no more", func(context.Context) error {
		select {
		case err := <-r.ended:
			b.Fatalf("a leader without its Lease ended: %v", err)
		default:
		}
		metric, err := r.metric("clusterset_controller_leading", map[string]string{})
		if err == nil && metric.GetGauge().GetValue() != 0 {
			err = fmt.Errorf("it is %v", metric)
		}
		return err
	})
}

// testLeaderIsCutOff: it stops, and another replica takes over.
func testLeaderIsCutOff(b *bed) {
	b.west.stop()
	b.deleteLeaderLease()
	first := b.stand("first")
	b.leads(first)
	b.beat(b.pairs()...)
	b.endpoints(b.west, "solo", "10.65.0.8")
	b.expect(healthy.with("solo", "west/10.65.0.8 -> IP"))

	second := b.stand("second")
	first.open.Store(true)
	b.endpoints(b.west, "solo", "10.65.0.9")
	b.lost(first)
	b.leads(second)
	b.beat(b.pairs()...)
	b.expect(healthy.with("solo", "west/10.65.0.9 -> IP"))
	b.calm()
}

// testLeaderLeaseByHand: a leader whose Lease says another name stops, and
// leads again when it finds it free, here because a person frees it.
func testLeaderLeaseByHand(b *bed) {
	b.west.stop()
	b.deleteLeaderLease()
	first := b.stand("first")
	b.leads(first)
	b.beat(b.pairs()...)
	thief, seconds := "thief", int32(60)
	b.editLease(b.west, controller.LeaderLease, func(lease *coordinationv1.Lease) {
		now := metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &thief, &seconds, &now
	})
	b.lost(first)
	b.expect(healthy)
	b.deleteLeaderLease()
	b.leads(first)
	b.endpoints(b.west, "solo", "10.65.0.9")
	b.beat(b.pairs()...)
	b.expect(healthy.with("solo", "west/10.65.0.9 -> IP"))
	b.calm()
}

// deleteLeaderLease makes the next election begin at once.
func (b *bed) deleteLeaderLease() {
	b.Helper()
	b.must(ignoreNotFound(b.west.CoordinationV1().Leases(system).Delete(b.Context(), controller.LeaderLease, metav1.DeleteOptions{})))
}

// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller"
)

// runUntilError runs a controller that is expected to end by itself.
func runUntilError(t testing.TB, c *cluster) error {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errStillRuns)
	defer cancel()
	options := c.options
	options.Registry = prometheus.NewRegistry()
	err := controller.Run(ctx, options)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// TestLeaderElection runs two replicas: one works, the other takes over when
// the first stops, or loses its Lease.
func TestLeaderElection(t *testing.T) {
	east, west := bed(t)
	west.start(t)
	east.join(t, west)
	east.options.LeaderElection = true
	east.options.LeaseDuration, east.options.RenewDeadline, east.options.RetryPeriod = 3*time.Second, 2*time.Second, 200*time.Millisecond
	replica := func(identity string) *cluster {
		c := *east
		c.options.Identity = identity
		return &c
	}
	first, second := replica("first"), replica("second")
	stopFirst := first.start(t)
	eventually(t, "first leads", first.metric(t, "clusterset_controller_leading", nil, 1))
	second.start(t)

	demo := namespace(t, east, west)
	web := key(demo, "web")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
	must(t, second.metric(t, "clusterset_controller_leading", nil, 0)(t.Context()))

	// A graceful stop hands over at once, before the Lease would run out.
	stopFirst()
	begin := time.Now()
	eventually(t, "second leads", second.metric(t, "clusterset_controller_leading", nil, 1))
	if took := time.Since(begin); took > first.options.LeaseDuration {
		t.Errorf("the second took over after %s, as if the first had died", took)
	}
	west.create(t, demo, endpoints("web", "10.65.0.11"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.11]", east)
}

// TestLostLease: a leader whose Lease somebody else takes stops working and
// says so.
func TestLostLease(t *testing.T) {
	east, _ := bed(t)
	east.options.LeaderElection = true
	east.options.Identity = "first"
	east.options.LeaseDuration, east.options.RenewDeadline, east.options.RetryPeriod = 3*time.Second, 2*time.Second, 200*time.Millisecond
	ended := make(chan error, 1)
	go func() { ended <- runUntilError(t, east) }()
	leases := east.CoordinationV1().Leases(system)
	eventually(t, "Lease taken away", func(ctx context.Context) error {
		lease, err := leases.Get(ctx, controller.LeaderLease, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != "first" {
			return fmt.Errorf("the holder is %v", lease.Spec.HolderIdentity)
		}
		thief, seconds, now := "thief", int32(60), metav1.NowMicro()
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &thief, &seconds, &now
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
		return err
	})
	t.Cleanup(func() {
		if err := leases.Delete(context.Background(), controller.LeaderLease, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	if err := <-ended; err == nil || errors.Is(err, errStillRuns) {
		t.Errorf("got %v, want an error that tells of the lost Lease", err)
	}
}

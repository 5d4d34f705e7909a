// SPDX-License-Identifier: Apache-2.0

package controller

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
	t.Parallel()
	east, west := bed(t)
	west.start(t)
	east.join(t, west)
	east.options.LeaderElection = true
	east.options.LeaseDuration, east.options.RenewDeadline, east.options.RetryPeriod = 5*time.Minute, 2*time.Minute, 200*time.Millisecond // longer than patience
	replica := func(identity string) *cluster {
		c := *east
		c.options.Identity = identity
		return &c
	}
	first, second := replica("first"), replica("second")
	stopFirst := first.start(t)
	eventually(t, "first leads", first.metric(t, "clusterset_controller_leader", nil, 1))
	second.start(t)

	demo := namespace(t, east, west)
	web := key(demo, "web")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
	must(t, second.metric(t, "clusterset_controller_leader", nil, 0)(t.Context()))

	// A graceful stop hands over: nobody here waits until the Lease runs out.
	stopFirst()
	eventually(t, "second leads", second.metric(t, "clusterset_controller_leader", nil, 1))
	west.create(t, demo, endpoints("web", "10.65.0.11"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.11]", east)
}

// TestLostLease: a leader whose Lease somebody else takes stops working, and
// leads again once it finds the Lease free. Where it still finds its own name in
// a Lease that it could not renew, it need not wait until that runs out.
func TestLostLease(t *testing.T) {
	t.Parallel()
	east, _ := bed(t)
	east.options.LeaderElection = true
	east.options.Identity = "first"
	east.options.LeaseDuration, east.options.RenewDeadline, east.options.RetryPeriod = 3*time.Second, 2*time.Second, 200*time.Millisecond
	var cut atomic.Bool
	east.options.Config = rest.CopyConfig(east.options.Config)
	east.options.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if cut.Load() {
				return nil, errors.New("the way is cut")
			}
			return next.RoundTrip(request)
		})
	})
	leases := east.CoordinationV1().Leases(system)
	t.Cleanup(func() {
		if err := leases.Delete(context.Background(), controller.LeaderLease, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	east.start(t)
	demo := namespace(t, east)
	web := key(demo, "web")
	leads := func(want float64) {
		t.Helper()
		eventually(t, fmt.Sprintf("leading is %v", want), east.metric(t, "clusterset_controller_leader", nil, want))
	}
	leads(1)
	east.create(t, demo, service("web", "10.64.0.10")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.10]", east)

	edit := func(change func(*coordinationv1.Lease)) {
		t.Helper()
		eventually(t, "edit the Lease", func(ctx context.Context) error {
			lease, err := leases.Get(ctx, controller.LeaderLease, metav1.GetOptions{})
			if err != nil {
				return err
			}
			change(lease)
			_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
			return err
		})
	}
	hold := func(identity string) {
		t.Helper()
		edit(func(lease *coordinationv1.Lease) {
			seconds, now := int32(3600), metav1.NowMicro()
			lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &identity, &seconds, &now
		})
	}
	hold("thief")
	leads(0)
	east.create(t, demo, endpoints("web", "10.64.0.11"))
	hold("")
	leads(1)
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.11]", east)

	// It cannot renew, nor give up the Lease, which has its name for an hour.
	cut.Store(true)
	leads(0)
	hold("first")
	east.create(t, demo, endpoints("web", "10.64.0.12"))
	cut.Store(false)
	leads(1)
	expect(t, web, "ClusterSetIP of east Ready [east/10.64.0.12]", east)
}

// roundTripper is one function.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

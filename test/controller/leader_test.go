// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"net/http"
	"testing"
	"time"
)

// TestLeaderElection runs two replicas: one works, the other takes over when
// the first stops.
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

// roundTripper is one function.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

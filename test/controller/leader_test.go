// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// TestLeaderElection runs two replicas: one works, and the other takes over when
// the first stops. Nobody waits until the Lease runs out.
func TestLeaderElection(t *testing.T) {
	t.Parallel()
	run(t, &realBed{}, func(s *scenario.Set, east, west *scenario.Cluster) {
		east.Stop()
		east.Options.LeaderElection, east.Options.Identity = true, "first"
		east.Options.LeaseDuration, east.Options.RenewDeadline, east.Options.RetryPeriod = 5*time.Minute, 2*time.Minute, 200*time.Millisecond // longer than any wait
		east.Start()
		east.ExpectMetric(1, "clusterset_controller_leader")

		second := east.Options
		second.Identity, second.Registry = "second", prometheus.NewRegistry()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- controller.Run(ctx, second) }()
		defer func() {
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		west.Export("web:10.65.0.10")
		s.Expect(scenario.View{"web": "west/10.65.0.10 -> VIP"})
		east.ExpectMetric(1, "clusterset_controller_leader")
		east.Stop()
		west.SetEndpoints("web", "10.65.0.11")
		s.Expect(scenario.View{"web": "west/10.65.0.11 -> VIP"})
	})
}

// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/probe"
	"github.com/clusterset-dns/clusterset-dns/controller/reconciler"
)

// targets encodes the local cluster's probe targets, for clusters of its network (pods) and of others (exposed); empty for
// none.
func (c *controller) targets(r *reconciler.Reconciler) (pods, exposed string) {
	if c.options.Probes == nil {
		return "", ""
	}
	service := types.NamespacedName{Namespace: c.options.Namespace, Name: probe.Service}
	return probe.Encode(probe.Of(r.Local.KubernetesSlices(service))), probe.Encode(probe.Of(r.Exposed(probe.Port)))
}

// probeKey returns the key of the local cluster for probe.Serve. Every replica, not only the leader, rereads it until the context ends.
func (c *controller) probeKey(ctx context.Context, group *sync.WaitGroup) func() string {
	var key atomic.Value
	key.Store("")
	group.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) {
			lease, err := c.client.CoordinationV1().Leases(c.options.Namespace).Get(ctx, member.HeartbeatLease,
				metav1.GetOptions{})
			if err == nil {
				key.Store(string(lease.UID))
			}
		}, liveness.HeartbeatInterval)
	})
	return func() string { return key.Load().(string) }
}

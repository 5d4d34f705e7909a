// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/canary"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// canaries returns the text of the canaries of the local cluster, empty for none.
func (c *Controller) canaries(own *local.Cluster) string {
	if c.options.Canary == nil {
		return ""
	}
	return canary.Encode(canary.Of(own.KubernetesSlices(
		types.NamespacedName{Namespace: c.options.Namespace, Name: canary.Service})))
}

// canaryKey returns the Key of the local cluster, which it reads until the context ends, also in replicas that do not
// lead.
func (c *Controller) canaryKey(ctx context.Context, group *sync.WaitGroup) canary.Key {
	var key atomic.Value
	key.Store("")
	group.Go(func() {
		for ctx.Err() == nil {
			lease, err := c.client.CoordinationV1().Leases(c.options.Namespace).Get(ctx, member.HeartbeatLease,
				metav1.GetOptions{})
			if err == nil {
				key.Store(string(lease.UID))
			}
			timer := c.options.Clock.NewTimer(member.HeartbeatInterval)
			select {
			case <-ctx.Done():
			case <-timer.C():
			}
			timer.Stop()
		}
	})
	return func() string { return key.Load().(string) }
}

// prober returns what probes the canaries of the members.
func (c *Controller) prober(members *member.Members, paths *canary.Paths) *canary.Prober {
	return &canary.Prober{
		Members: func() (probed []canary.Member) {
			for _, each := range members.List() {
				probed = append(probed, each)
			}
			return probed
		},
		Paths: paths, Dial: c.options.DialCanary,
	}
}

// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
)

// caches are what a replica knows of its cluster, whether or not it leads: a new leader lists nothing before it works.
// They write nothing.
type caches struct {
	gate  *informer.FreshnessGate
	local *local.Cluster
	api   *local.API
	// full is set once the caches were full.
	full atomic.Bool
}

// notFull is why a replica is not ready before its caches are.
const notFull = "the caches of the local cluster are not full yet"

// newCaches returns caches that are not filled yet.
func (c *Controller) newCaches() *caches {
	gate := &informer.FreshnessGate{}
	return &caches{
		gate: gate, local: local.New(c.client, gate, c.options.Namespace), api: local.NewAPI(c.config, c.httpClient, c.dynamic, gate),
	}
}

// start fills the caches until the context ends, in goroutines of the group. It calls restart where the process cannot
// go on with them.
func (c *caches) start(ctx context.Context, group *sync.WaitGroup, restart func(error)) {
	c.local.Start(ctx, group)
	group.Go(func() {
		if err := c.api.Run(ctx); err != nil {
			restart(err)
		}
	})
	group.Go(func() { c.full.Store(c.wait(ctx)) })
}

// wait returns true once the caches are full and none is known to be behind, or false if the context ends before. If a
// watch broke, a leader begins only after its objects were listed again. Caches that are not known to be behind are as
// current as those of a leader.
func (c *caches) wait(ctx context.Context) bool {
	return c.local.WaitForSync(ctx) && c.api.WaitForSync(ctx) && c.gate.WaitForAll(ctx)
}

// missing returns why a replica that waits to lead is not ready to; empty if it is.
func (c *caches) missing() string {
	if c.full.Load() {
		return ""
	}
	return notFull
}

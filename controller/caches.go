// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
)

// notFull is why a replica is not ready before its caches are.
const notFull = "the caches of the local cluster are not full yet"

// fill fills the caches of the local cluster until the context ends, in goroutines of the group. All replicas do that: a new
// leader lists nothing before it works. It calls restart where the process cannot go on with them.
func (c *Controller) fill(ctx context.Context, group *sync.WaitGroup, restart func(error)) error {
	c.own.Start(ctx, group)
	if err := c.api.Open(ctx, group, restart); err != nil {
		return err
	}
	group.Go(func() { c.full.Store(c.wait(ctx)) })
	return nil
}

// wait returns true once the caches are full and none is known to be behind, or false if the context ends before. If a
// watch broke, a leader begins only after its objects were listed again. Caches that are not known to be behind are as
// current as those of a leader.
func (c *Controller) wait(ctx context.Context) bool {
	return c.own.WaitForSync(ctx) && c.api.WaitForSync(ctx) && c.gate.WaitForAll(ctx)
}

// missing returns why a replica that waits to lead is not ready to; empty if it is.
func (c *Controller) missing() string {
	if c.full.Load() {
		return ""
	}
	return notFull
}

// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"fmt"
	"time"
)

// listsAtOnce bounds the list pages that are read and decoded at once. All members are listed at the start, and a page
// takes a multiple of maxAnswer in memory.
const listsAtOnce = 8

// pageWithin bounds how long one page may keep its turn while it is read. Who waits for a turn is served in order.
const pageWithin = 15 * time.Second

// errSlow reports a page that took longer than pageWithin.
var errSlow = fmt.Errorf("a page of the list did not arrive within %s of its beginning: check the network to the API server",
	pageWithin)

// A turn is the right to hold one page. It is taken when the response begins, so that a server which does not answer
// blocks no other member, and lost after pageWithin.
type turn struct {
	of    chan struct{} // a semaphore; nil for no bound
	taken bool
}

type turnKey struct{}

// with returns a context whose request waits for the turn.
func (t *turn) with(ctx context.Context) context.Context { return context.WithValue(ctx, turnKey{}, t) }

// takeTurn waits for the turn of a request that has one, until the context ends.
func takeTurn(ctx context.Context) error {
	t, _ := ctx.Value(turnKey{}).(*turn)
	if t == nil || t.of == nil || t.taken {
		return nil
	}
	select {
	case t.of <- struct{}{}:
		t.taken = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// end releases the turn.
func (t *turn) end() {
	if t.taken {
		t.taken = false
		<-t.of
	}
}

// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// listsAtOnce bounds the list pages that are read and decoded at once. All members are listed at the start, and a page
// takes a multiple of maxAnswer in memory.
const listsAtOnce = 8

// A turn is the right to hold one page. It is taken when the response begins, so that a server which does not answer
// blocks no other member; one that answers slowly blocks none for long.
type turn struct {
	of    chan struct{} // the semaphore that all members share
	taken bool
}

type turnKey struct{}

// with returns a context whose request waits for the turn.
func (t *turn) with(ctx context.Context) context.Context { return context.WithValue(ctx, turnKey{}, t) }

// takeTurn waits for the turn of a request, if it has one, until the context ends.
func takeTurn(ctx context.Context) error {
	t, _ := ctx.Value(turnKey{}).(*turn)
	if t == nil || t.taken {
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
		<-t.of
		t.taken = false
	}
}

// errLate reports an answer that took longer than pageWithin.
var errLate = errors.New("the answer takes too long")

// readWithin reads a body of at most limit bytes and one more, and closes it.
func readWithin(body io.ReadCloser, limit int, within time.Duration) ([]byte, error) {
	late := time.AfterFunc(within, func() { _ = body.Close() })
	defer body.Close()
	whole, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	if !late.Stop() && err != nil {
		return nil, fmt.Errorf("%w: more than %s", errLate, within)
	}
	return whole, err
}

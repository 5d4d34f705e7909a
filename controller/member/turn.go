// SPDX-License-Identifier: Apache-2.0

package member

import "context"

// listsAtOnce is how many pages of lists of members are held at once while they are read and decoded. At the start all
// members are listed, and a page takes a multiple of maxAnswer.
const listsAtOnce = 8

// A turn is the right to hold one page. It is taken once the server began to answer: one that does not answer keeps
// nobody waiting.
type turn struct {
	of    chan struct{} // nil for no bound
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

// end gives the turn to the next one.
func (t *turn) end() {
	if t.taken {
		t.taken = false
		<-t.of
	}
}

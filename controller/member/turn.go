// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	// listsAtOnce bounds the list pages that are read and decoded at once, and ofServer those of one API server, or of what
	// stands before several. All members are listed at the start, and a page takes a multiple of maxAnswer in memory.
	listsAtOnce, ofServer = 8, 2
	// pageWithin bounds how long a page may take once it has its turn: others wait for it.
	pageWithin = 15 * time.Second
)

// turns are shared by all members.
type turns struct {
	all chan struct{} // a semaphore
	mu  sync.Mutex
	// servers are semaphores by the host of the URL. A server that no member has anymore costs some bytes.
	servers map[string]chan struct{}
}

func newTurns(all int) *turns {
	return &turns{all: make(chan struct{}, all), servers: map[string]chan struct{}{}}
}

// server returns the semaphore of a server.
func (t *turns) server(host string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.servers[host] == nil {
		t.servers[host] = make(chan struct{}, ofServer)
	}
	return t.servers[host]
}

// A turn is the right to hold one page. It is taken when the response begins, so that a server which does not answer
// blocks no other member; one that answers slowly blocks none for long.
type turn struct {
	of    *turns // nil for no bound
	taken []chan struct{}
}

type turnKey struct{}

// with returns a context whose request waits for the turn.
func (t *turn) with(ctx context.Context) context.Context { return context.WithValue(ctx, turnKey{}, t) }

// takeTurn waits for the turn of a request to a server, if it has one, until the context ends.
func takeTurn(ctx context.Context, host string) error {
	t, _ := ctx.Value(turnKey{}).(*turn)
	if t == nil || t.of == nil || t.taken != nil {
		return nil
	}
	for _, semaphore := range []chan struct{}{t.of.server(host), t.of.all} {
		select {
		case semaphore <- struct{}{}:
			t.taken = append(t.taken, semaphore)
		case <-ctx.Done():
			t.end()
			return context.Cause(ctx)
		}
	}
	return nil
}

// end releases the turn.
func (t *turn) end() {
	for _, semaphore := range t.taken {
		<-semaphore
	}
	t.taken = nil
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

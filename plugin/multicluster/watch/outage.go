// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"sync"
	"time"
)

// patience is how long what is known again of one resource waits for the others after an outage. It is a little more
// than the longest time between two tries.
const patience = 7 * time.Second

// outage keeps what is read of one resource after an outage of the API server from being published before the others
// are read again: a new import with the slices of before, or new slices with the import of before, can be an answer that
// never was right. A resource that stays away is waited for once.
//
// A resource is read again once a list of it, an event or a bookmark arrived. That a watch began says nothing: an API
// server that was started anew begins it, and says in it that the place where it should go on is too old.
//
// It is safe for concurrent use.
type outage struct {
	mu     sync.Mutex
	behind map[Resource]struct{}
	due    time.Time     // when it is published all the same; zero where nothing was read again, or everything
	over   chan struct{} // closed once nothing is behind; nil where due is zero
}

// fails notes that a resource which was read can be read no longer.
func (o *outage) fails(resource Resource) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.behind == nil {
		o.behind = make(map[Resource]struct{})
	}
	o.behind[resource] = struct{}{}
}

// ends notes that a resource is read again. Where inputs change with that, it is called with their lock and before: the
// publisher, which may wake at once, takes nothing until all of the change is there.
func (o *outage) ends(resource Resource) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, ok := o.behind[resource]; !ok {
		return
	}
	delete(o.behind, resource)
	switch {
	case len(o.behind) > 0:
		if o.due.IsZero() {
			o.due, o.over = time.Now().Add(patience), make(chan struct{})
		}
	case o.over != nil:
		close(o.over)
		o.due, o.over = time.Time{}, nil
	}
}

// wait returns once nothing is behind what was read again, or has been for too long, or the context ends.
func (o *outage) wait(ctx context.Context) {
	o.mu.Lock()
	due, over := o.due, o.over
	o.mu.Unlock()
	if over == nil {
		return
	}
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-over:
	case <-timer.C:
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.over == over {
			o.behind, o.due, o.over = nil, time.Time{}, nil
		}
	}
}

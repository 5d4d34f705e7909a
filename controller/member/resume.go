// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/listwatch"
)

const (
	// replayWithin is how long a resumed watch may take to deliver again what is beyond the anchor.
	replayWithin = 10 * time.Second
	// overlap is how long a session must last before a delivery proves that the watch of the slices is open beside it:
	// a connection that is lost is noticed within 15 s, and what it delivered until then may be read late.
	overlap = 30 * time.Second
	// unwatched is how long the API server may answer requests and fail each watch before the slices are listed: they
	// would be out of date although the heartbeat arrives.
	unwatched = time.Minute
	// connecting is how long a list waits for a session, so that the watch after it has one.
	connecting = 2 * time.Second
)

// A resumer resumes broken watches of the slices, unless the etcd may have been restored from a backup
// (docs/design/watches.md).
type resumer struct {
	heartbeat *heartbeat
	// read reads the heartbeat now, not from a cache.
	read func(context.Context) (renewal, error)
	// session is the one when the last list began.
	session atomic.Pointer[session]
	// incomplete is set if the last list may be incomplete: a watch after it is not resumed, so that the next list
	// comes soon.
	incomplete atomic.Bool
	// unopened counts the last lists that no watch could follow. Only Open uses it.
	unopened int
}

// Listing implements following.
func (r *resumer) Listing(ctx context.Context) {
	r.heartbeat.await(ctx, connecting)
	current, _ := r.heartbeat.current()
	r.session.Store(current)
}

// Open implements following. The watch ends with an error when all slices must be listed.
func (r *resumer) Open(ctx context.Context, options metav1.ListOptions, open open) (watch.Interface, error) {
	begun := time.Now() // a proxy may hold the response back until the first event
	first, err := open(ctx, options)
	switch {
	case apierrors.IsTooManyRequests(err):
		return nil, err // the reflector opens the watch again
	case err != nil:
		r.wait(ctx)
		return nil, listwatch.ErrBroken
	}
	r.unopened = 0
	ctx, stop := context.WithCancel(ctx)
	trail := newTrail(options.ResourceVersion)
	if r.incomplete.Load() {
		trail.floor = math.MaxUint64
	}
	w := &resumed{
		resumer: r, open: open, options: options, session: r.session.Load(), trail: trail,
		result: make(chan watch.Event), stop: stop,
	}
	w.running.Go(func() { w.run(ctx, first, begun) })
	return w, nil
}

// wait delays the list that follows a list without a watch: longer the more of these there were in succession, since
// the lists are for nothing then, or all that is seen of the member.
func (r *resumer) wait(ctx context.Context) {
	timer := time.NewTimer(min(retry.Duration<<r.unopened, unwatched))
	defer timer.Stop()
	if r.unopened < retry.Steps {
		r.unopened++
	}
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// resumed is a watch that is opened again whenever it ends.
type resumed struct {
	*resumer
	open    open
	options metav1.ListOptions
	// session is one of the same history of etcd as the watch.
	session  *session
	trail    *trail
	deadline time.Time // of what is to be delivered again
	// failing is since when watches fail although the heartbeat can be read, zero if they do not.
	failing time.Time

	result  chan watch.Event
	stop    context.CancelFunc
	running sync.WaitGroup
}

// ResultChan implements watch.Interface.
func (w *resumed) ResultChan() <-chan watch.Event { return w.result }

// Stop implements watch.Interface.
func (w *resumed) Stop() {
	w.stop()
	w.running.Wait()
}

func (w *resumed) run(ctx context.Context, current watch.Interface, begun time.Time) {
	defer close(w.result)
	delay := retry.DelayWithReset(clock.RealClock{}, retryReset)
	for {
		err := w.pass(ctx, current)
		current.Stop()
		early := w.early(begun)
		if time.Since(begun) > lasting {
			delay = retry.DelayWithReset(clock.RealClock{}, retryReset)
		}
		if err == nil {
			current, begun, err = w.reopen(ctx, early, delay)
		}
		if err != nil {
			status := apierrors.NewResourceExpired(err.Error()).Status()
			w.send(ctx, watch.Event{Type: watch.Error, Object: &status})
			return
		}
	}
}

// early reports whether the watch ended before its timeout.
func (w *resumed) early(begun time.Time) bool {
	seconds := w.options.TimeoutSeconds
	return seconds == nil || time.Since(begun) < time.Duration(*seconds)*time.Second-time.Second
}

func (w *resumed) send(ctx context.Context, event watch.Event) bool {
	select {
	case w.result <- event:
		return true
	case <-ctx.Done():
		return false
	}
}

// pass passes events on until the watch ends. It returns an error if all slices must be listed.
func (w *resumed) pass(ctx context.Context, current watch.Interface) error {
	var due <-chan time.Time
	if !w.trail.proven() {
		timer := time.NewTimer(time.Until(w.deadline))
		defer timer.Stop()
		due = timer.C
	}
	for {
		var event watch.Event
		var open bool
		select {
		case event, open = <-current.ResultChan():
		case <-due:
			if !w.trail.proven() {
				return listwatch.ErrBroken
			}
			continue
		case <-ctx.Done():
			return ctx.Err()
		}
		if !open {
			return nil
		}
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		pass, err := w.note(event)
		if err != nil {
			return err
		}
		if pass && !w.send(ctx, event) {
			return ctx.Err()
		}
	}
}

// note reports whether an event is to be passed on, and returns an error if all slices must be listed.
func (w *resumed) note(event watch.Event) (pass bool, err error) {
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return false, err
	}
	if pass = true; event.Type == watch.Bookmark {
		w.trail.bookmark(object.GetResourceVersion())
	} else {
		pass = w.trail.deliver(object.GetNamespace()+"/"+object.GetName(), object.GetResourceVersion())
	}
	if w.trail.passed() {
		return false, listwatch.ErrBroken
	}
	if s, age := w.heartbeat.current(); s != w.session && age >= overlap {
		listed, _ := w.heartbeat.in(s)
		if w.trail.anchored() && !listed.history.Includes(w.trail.anchor.history) {
			return false, listwatch.ErrBroken
		}
		w.anchor()
		w.session = s
	}
	return pass, nil
}

// anchor takes the last heartbeat of the session as the anchor.
func (w *resumed) anchor() {
	_, last := w.heartbeat.in(w.session)
	w.trail.setAnchor(last)
}

// reopen opens the watch again, with backoff, until the context ends. It returns an error if all slices must be listed.
func (w *resumed) reopen(ctx context.Context, early bool, delay wait.DelayFunc) (watch.Interface, time.Time, error) {
	w.anchor()
	if early && !w.trail.anchored() {
		return nil, time.Time{}, listwatch.ErrBroken // otherwise no etcd was restored: that ends watches early
	}
	for {
		if early {
			select {
			case <-time.After(delay()):
			case <-ctx.Done():
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, time.Time{}, err
		}
		early = true
		begun := time.Now()
		next, err := w.again(ctx)
		switch {
		case err == nil:
			return next, begun, nil
		case errors.Is(err, listwatch.ErrBroken), apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			return nil, begun, err
		case refused(err): // the list is refused, too, or shows what changed
			return nil, begun, fmt.Errorf("%w: %w", listwatch.ErrBroken, err)
		}
	}
}

// refused reports whether an API server would refuse a request again.
func refused(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) ||
		apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// again opens the watch again, once. Every time, the heartbeat is read first: the etcd may be restored any time that no
// watch is open.
func (w *resumed) again(ctx context.Context) (watch.Interface, error) {
	w.heartbeat.await(ctx, connecting)
	session, _ := w.heartbeat.current()
	anchored := w.trail.anchored()
	if anchored {
		now, err := w.read(ctx)
		switch {
		case err != nil:
			w.failing = time.Time{} // nothing is known of the watches
			return nil, err
		case !now.history.Includes(w.trail.anchor.history):
			return nil, listwatch.ErrBroken
		}
		w.trail.resume()
	}
	options := w.options
	options.ResourceVersion = strconv.FormatUint(w.trail.version, 10)
	opened, err := w.open(ctx, options)
	switch {
	case err == nil:
		w.session, w.failing = session, time.Time{}
		if !w.trail.proven() { // the time in which no watch could be opened does not count
			w.deadline = time.Now().Add(replayWithin)
		}
	case apierrors.IsTooManyRequests(err): // a list would be as well
	case !anchored:
		return nil, listwatch.ErrBroken
	case w.failing.IsZero():
		w.failing = time.Now()
	case time.Since(w.failing) >= unwatched:
		return nil, listwatch.ErrBroken
	}
	return opened, err
}

// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// early is by how much a watch may end before its timeout and still count as one that ended by itself: requests take
// time, and clocks differ.
const early = time.Second

// ErrBroken makes a reflector list all objects again. The cause was returned to the caller of the request that failed.
var ErrBroken = errors.New("the watch ended before its timeout: all objects are listed again")

// A Client reads one resource. Typed clients and metadata clients implement it.
type Client[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// watchState decides what follows when a watch of the local cluster ends, for one reflector:
//
//   - A watch that ended at the timeout it was opened with is opened again from the last resourceVersion.
//   - A watch that ended earlier, or that cannot be opened, is followed by a list. The API server may have been restored
//     from a backup meanwhile. A restored API server sends nothing to a watch from a resourceVersion that it has not
//     reached yet. (Of a member, the heartbeat tells whether its etcd was restored: see package member.)
//   - A watch that is refused with 429 (Too Many Requests) is opened again from the last resourceVersion, with backoff. A
//     list would cost an overloaded API server more. client-go has waited for Retry-After before it returns the 429.
//   - An error that the API server sends inside a watch, such as 410 (Gone), is followed by a list. client-go's reflector
//     does this by itself.
//
// The zero value is ready for use. It is safe for concurrent use.
type watchState struct {
	// until is when the last watch ends by itself; nil after a list.
	until atomic.Pointer[time.Time]
}

// listing is to be called before each list: the watch after a list is opened whatever happened to the watch before.
func (w *watchState) listing() { w.until.Store(nil) }

// open calls request, unless the last watch broke. It returns ErrBroken if all objects are to be listed again. A watch
// that begins with a list (SendInitialEvents) always reads the newest state, and its error is returned as it is.
func (w *watchState) open(ctx context.Context, options metav1.ListOptions,
	request func(context.Context, metav1.ListOptions) (watch.Interface, error),
) (watch.Interface, error) {
	if options.SendInitialEvents != nil {
		w.listing()
		options.ResourceVersion = ""
	}
	if until := w.until.Load(); until != nil && time.Until(*until) > early {
		return nil, ErrBroken
	}
	begun := time.Now() // a proxy may hold the response back until the first event
	opened, err := request(ctx, options)
	switch {
	case err != nil && options.SendInitialEvents == nil && !apierrors.IsTooManyRequests(err):
		return nil, ErrBroken // the reflector would open the watch again after some of these errors
	case err != nil:
		return nil, err
	case options.TimeoutSeconds != nil:
		until := begun.Add(time.Duration(*options.TimeoutSeconds) * time.Second)
		w.until.Store(&until)
	}
	return opened, nil
}

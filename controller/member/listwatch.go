// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// pageSize is the number of objects in a page of a list. It is halved after a page that is too large or too slow, and
// doubled again after pagesToGrow pages that are not: the list must end before the API server forgets its revision.
const pageSize, pagesToGrow = 100, 8

// listWatch makes a reflector list in pages. A streamed list would be held as a whole before its size is known.
type listWatch struct {
	cache.ListWatch
	// watched is the watch that was opened last after the last list, nil if none was.
	watched atomic.Pointer[watch.Interface]
	// expired is set if another list is to follow the last one.
	expired atomic.Bool
}

// expire has all objects listed again.
func (l *listWatch) expire() {
	l.expired.Store(true)
	if w := l.watched.Load(); w != nil {
		(*w).Stop()
	}
}

// IsWatchListSemanticsUnSupported tells a reflector not to ask for a stream.
func (*listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// Errors with which a reflector lists all objects again.
var (
	errRestored = errors.New("the etcd may be another one than before: all objects are listed again")
	errExpired  = errors.New("there may be room for what was left out: all objects are listed again")
)

// selected watches the objects that only selects. list takes over a list of them itself, and returns its resourceVersion: the
// reflector gets an empty one. outcome is called with the result of each request that was not canceled, because a reflector
// retries some failures without returning them. A reflector opens a watch that ended again from its last resourceVersion,
// unless again returns an error.
func selected[L runtime.Object](client informer.Client[L], only metav1.ListOptions,
	list func(context.Context) (version string, err error), again func(context.Context, string) error, outcome func(error),
) *listWatch {
	tell := func(ctx context.Context, err error) {
		if ctx.Err() == nil {
			outcome(err)
		}
	}
	lw := &listWatch{}
	lw.ListWithContextFunc = func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		lw.watched.Store(nil)
		lw.expired.Store(false)
		version, err := list(ctx)
		tell(ctx, err)
		return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: version}}, err
	}
	lw.WatchFuncWithContext = func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		if lw.expired.Load() {
			return nil, errExpired
		}
		if lw.watched.Load() != nil {
			if err := again(ctx, options.ResourceVersion); err != nil {
				return nil, err
			}
		}
		options.LabelSelector, options.FieldSelector = only.LabelSelector, only.FieldSelector
		w, err := client.Watch(ctx, options)
		tell(ctx, err)
		if err == nil {
			lw.watched.Store(&w)
			if lw.expired.Load() {
				w.Stop() // expire may have seen the watch before
			}
		}
		return w, err
	}
	return lw
}

// paged returns the options of the first page of a list. API servers may answer a list of a given resourceVersion
// without pages.
func paged(only metav1.ListOptions) metav1.ListOptions {
	// A second more than newHTTPClient waits for the response to begin, whose error says more.
	seconds := int64(patience/time.Second) + 1
	only.Limit, only.TimeoutSeconds = pageSize, &seconds
	return only
}

// events is the cache.ReflectorStore of a listWatch.
type events[T any] struct{ put, remove func(T) }

func (e events[T]) Add(object any) error { return e.Update(object) }

func (e events[T]) Update(object any) error {
	e.put(object.(T))
	return nil
}

func (e events[T]) Delete(object any) error {
	e.remove(object.(T))
	return nil
}

// Replace does nothing: the list was taken over before.
func (events[T]) Replace([]any, string) error { return nil }

func (events[T]) Resync() error { return nil }

// list lists the slices of a member, and takes over those that the limits allow once whose returned the UID of the cluster.
// It holds only these and one page at a time.
func (s *sliceStore) list(ctx context.Context, client informer.Client[*discoveryv1.EndpointSliceList],
	options metav1.ListOptions, whose func() (uid string, err error),
) (version string, err error) {
	selection := s.account.List(s.imported())
	defer func() {
		if err != nil {
			s.account.Abandon()
		}
	}()
	page, fitting := turn{of: s.turns}, 0
	defer page.end()
	for {
		list, err := client.List(page.with(ctx), options)
		if (errors.Is(err, errTooLarge) || errors.Is(err, errLate)) && options.Limit > 1 {
			page.end()
			options.Limit, fitting = options.Limit/2, 0
			continue
		}
		if errors.Is(err, errTooLarge) {
			// The response that cannot be read has the token of the next page.
			return "", fmt.Errorf("one EndpointSlice is larger than any API server keeps, and no change of any other is seen while it is there: %w", errTooLarge)
		}
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			slice := export.Strip(&list.Items[i])
			if service := export.ServiceOf(slice); service.Name != "" {
				selection.Offer(service, slice)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			version = list.ResourceVersion
			break
		}
		page.end()
		if fitting++; fitting == pagesToGrow {
			options.Limit, fitting = min(2*options.Limit, pageSize), 0
		}
	}
	page.end()
	uid, err := whose()
	if err != nil {
		return "", err
	}
	return version, s.replace(selection, uid)
}

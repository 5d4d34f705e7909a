// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// pageSize is how many objects are asked for at once. It is halved where their
// answer is too large.
const pageSize = 100

// early is by how much a watch may end before its time and have ended by
// itself.
const early = time.Second

// errBroken has a reflector list anew. Why was told.
var errBroken = errors.New("the watch broke: listing anew")

// readable is the part of a typed client that a reflector needs.
type readable[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// listWatch is what a reflector reads by lists in pages and then a watch. A
// list that a server streams would be kept whole before anybody could look at
// its length.
type listWatch struct{ cache.ListWatch }

// IsWatchListSemanticsUnSupported tells a reflector not to ask for a stream.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// selected lists and watches what a typed client reads, narrowed by the
// server. Each page of a list has so long. outcome is told how each request
// went: a reflector tries some failures again without returning them.
//
// A watch that fails, or ends before its time, is followed by a list: who had
// to stop may come back as it was long ago, restored from a backup, and would
// say nothing of what changed until it is as far again.
func selected[L runtime.Object](client readable[L], patience time.Duration, list func(context.Context, metav1.ListOptions) (L, error), narrow func(*metav1.ListOptions), outcome func(error)) *listWatch {
	// The beginning of an answer is waited for less long: that tells more.
	seconds := int64(patience/time.Second) + 1
	tell := func(ctx context.Context, err error) {
		if ctx.Err() == nil {
			outcome(err)
		}
	}
	// When the watch ends by itself; of the one reflector that uses it, which may leave a list behind that it does not wait for.
	var until atomic.Pointer[time.Time]
	return &listWatch{cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			until.Store(nil)
			narrow(&options)
			// The newest state, in pages: what is not the newest may come whole.
			options.ResourceVersion, options.Limit, options.TimeoutSeconds = "", pageSize, &seconds
			result, err := list(ctx, options)
			tell(ctx, err)
			return result, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if end := until.Load(); end != nil && time.Until(*end) > early {
				return nil, errBroken
			}
			narrow(&options)
			begun := time.Now() // a proxy may keep the beginning of the answer until there is an event
			w, err := client.Watch(ctx, options)
			tell(ctx, err)
			switch {
			case apierrors.IsTooManyRequests(err):
				return nil, err // a list would ask for more; what comes later goes on from where it was
			case err != nil:
				return nil, errBroken // the reflector would try again and go on from where it was
			case options.TimeoutSeconds != nil:
				end := begun.Add(time.Duration(*options.TimeoutSeconds) * time.Second)
				until.Store(&end)
			}
			return w, nil
		},
	}}
}

// listSelection reads all slices of a member and returns those that the limits
// allow. At no time are more of them held than those, and one page. The store
// is told what was left out, before it gets the list.
func listSelection(ctx context.Context, client readable[*discoveryv1.EndpointSliceList], options metav1.ListOptions, store *sliceStore) (*discoveryv1.EndpointSliceList, error) {
	selection := export.NewSelection(store.limits, store.imported())
	result := &discoveryv1.EndpointSliceList{}
	for {
		page, err := client.List(ctx, options)
		if errors.Is(err, errTooLarge) && options.Limit > 1 {
			options.Limit /= 2
			continue
		}
		if errors.Is(err, errTooLarge) {
			// Where the next one begins is said in the answer that is not read.
			return nil, fmt.Errorf("one EndpointSlice is larger than any API server keeps, and no change of any other is seen while it is there: %w: more than %d bytes", errTooLarge, maxAnswer)
		}
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			one := page.Items[i] // so that it does not keep the page
			slice, _ := store.limits.Fitting(strip(&one))
			if service := ServiceOf(slice); service.Name != "" {
				selection.Offer(service, slice)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			result.ResourceVersion = page.ResourceVersion
			break
		}
	}
	for _, slice := range selection.Slices() {
		result.Items = append(result.Items, *slice)
	}
	store.leaves(selection)
	return result, nil
}

// listOne reads the first page of a list that has one object.
func listOne[L interface {
	runtime.Object
	metav1.ListInterface
}](ctx context.Context, client readable[L], options metav1.ListOptions) (L, error) {
	list, err := client.List(ctx, options)
	if err == nil {
		list.SetContinue("") // whatever else it has is not asked for
	}
	return list, err
}

// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"fmt"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/listwatch"
)

// pageSize is how many objects are asked for at once. It is halved if their
// answer is too large, and doubled again after pagesToGrow answers that were not.
const (
	pageSize    = 100
	pagesToGrow = 8
)

// listWatch is what a reflector reads by lists in pages and then a watch. A
// list that a server streams would be kept whole before anybody could look at
// its length.
type listWatch struct{ cache.ListWatch }

// IsWatchListSemanticsUnSupported tells a reflector not to ask for a stream.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// selected lists and watches what a typed client reads, narrowed by the
// server. patience bounds each page of a list. outcome is called with the
// result of each request, because a reflector retries some failures without
// returning them. What follows when the watch ends is decided by listwatch.
func selected[L runtime.Object](client listwatch.Client[L], patience time.Duration,
	list func(context.Context, metav1.ListOptions) (L, error), narrow func(*metav1.ListOptions),
	outcome func(error),
) *listWatch {
	// The beginning of an answer is waited for less long: that tells more.
	seconds := int64(patience/time.Second) + 1
	tell := func(ctx context.Context, err error) {
		if ctx.Err() == nil {
			outcome(err)
		}
	}
	// Of the one reflector that uses it, which may leave a list behind that it does not wait for.
	var watching listwatch.Watch
	return &listWatch{cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			watching.Listing()
			narrow(&options)
			// The newest state, in pages: what is not the newest may come whole.
			options.ResourceVersion, options.Limit, options.TimeoutSeconds = "", pageSize, &seconds
			result, err := list(ctx, options)
			tell(ctx, err)
			return result, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			narrow(&options)
			return watching.Open(ctx, options, func(ctx context.Context, options metav1.ListOptions) (watch.Interface,
				error,
			) {
				w, err := client.Watch(ctx, options)
				tell(ctx, err)
				return w, err
			})
		},
	}}
}

// listSelection reads all slices of a member and returns those that the limits
// allow. At no time are more of them held than those, and one page in its turn.
// The store is told what was left out, before it gets the list.
func listSelection(ctx context.Context, client listwatch.Client[*discoveryv1.EndpointSliceList],
	options metav1.ListOptions, store *sliceStore,
) (_ *discoveryv1.EndpointSliceList, err error) {
	defer func() {
		if err != nil {
			store.account.abandon()
		}
	}()
	selection := export.NewSelection(store.limits, store.imported(), store.account.claim)
	result := &discoveryv1.EndpointSliceList{}
	page, fitting := turn{of: store.turns}, 0
	defer page.end()
	for {
		list, err := client.List(page.with(ctx), options)
		if errors.Is(err, errTooLarge) && options.Limit > 1 {
			page.end()
			options.Limit /= 2
			fitting = 0
			continue
		}
		if errors.Is(err, errTooLarge) {
			// Where the next one begins is said in the answer that is not read.
			return nil, fmt.Errorf("one EndpointSlice is larger than any API server keeps, and no change of any other is seen while it is there: %w", errTooLarge)
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			one := list.Items[i] // so that it does not keep the page
			slice, _ := store.limits.Fitting(strip(&one))
			if service := ServiceOf(slice); service.Name != "" {
				selection.Offer(service, slice)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			result.ResourceVersion = list.ResourceVersion
			break
		}
		page.end()
		if fitting++; fitting == pagesToGrow {
			options.Limit, fitting = min(2*options.Limit, pageSize), 0
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
}](ctx context.Context, client listwatch.Client[L], options metav1.ListOptions) (L, error) {
	list, err := client.List(ctx, options)
	if err == nil {
		list.SetContinue("") // whatever else it has is not asked for
	}
	return list, err
}

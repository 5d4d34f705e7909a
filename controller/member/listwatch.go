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
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// pageSize is the number of objects in a page of a list. It is halved after a page that is too large, and doubled again
// after pagesToGrow pages that are not.
const (
	pageSize    = 100
	pagesToGrow = 8
)

// listWatch makes a reflector list in pages. A streamed list would be held as a whole before its size is known.
type listWatch struct{ cache.ListWatch }

// IsWatchListSemanticsUnSupported tells a reflector not to ask for a stream.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// selected lists, with list, and watches the objects of a typed client that narrow selects. patience bounds each page of a
// list. outcome is called with the result of each request, because a reflector retries some failures without returning
// them. resumer opens the watches.
func selected[L, R runtime.Object](client informer.Client[L], patience time.Duration, resumer *resumer,
	list func(context.Context, metav1.ListOptions) (R, error), narrow func(*metav1.ListOptions),
	outcome func(error),
) *listWatch {
	// A second more than newHTTPClient waits for the response to begin, whose error says more.
	seconds := int64(patience/time.Second) + 1
	tell := func(ctx context.Context, err error) {
		if ctx.Err() == nil {
			outcome(err)
		}
	}
	return &listWatch{cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			resumer.opened.Store(false)
			narrow(&options)
			// API servers may answer a list of another resourceVersion without pages.
			options.ResourceVersion, options.Limit, options.TimeoutSeconds = "", pageSize, &seconds
			result, err := list(ctx, options)
			tell(ctx, err)
			return result, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			narrow(&options)
			return resumer.open(ctx, options, func(ctx context.Context, options metav1.ListOptions) (watch.Interface,
				error,
			) {
				w, err := client.Watch(ctx, options)
				tell(ctx, err)
				return w, err
			})
		},
	}}
}

// listSelection lists the slices of a member and returns those that the limits allow. It holds only these and one page at
// a time. It notes in the store what was left out, before the store gets the list, unless that is abandoned.
func listSelection(ctx context.Context, client informer.Client[*discoveryv1.EndpointSliceList],
	options metav1.ListOptions, store *sliceStore,
) (_ *export.PackedList, abandon func(), err error) {
	selection := store.account.List(store.imported())
	abandon = func() { store.account.Abandon(selection) }
	defer func() {
		if err != nil {
			store.account.Abandon(selection)
		}
	}()
	result := &export.PackedList{}
	page, fitting := turn{of: store.turns}, 0
	defer page.end()
	for {
		list, err := client.List(page.with(ctx), options)
		if (errors.Is(err, errTooLarge) || errors.Is(err, errLate)) && options.Limit > 1 {
			page.end()
			options.Limit /= 2
			fitting = 0
			continue
		}
		if errors.Is(err, errTooLarge) {
			// The response that cannot be read has the token of the next page.
			return nil, nil, fmt.Errorf("one EndpointSlice is larger than any API server keeps, and no change of any other is seen while it is there: %w", errTooLarge)
		}
		if err != nil {
			return nil, nil, err
		}
		for i := range list.Items {
			slice := export.Strip(&list.Items[i])
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
	result.Items = selection.Slices()
	store.account.Note(selection)
	return result, abandon, nil
}

// lacks reports whether a list lacks services that are imported from the member.
func (s *sliceStore) lacks(list *export.PackedList) bool {
	missing := s.imported()
	for _, slice := range list.Items {
		delete(missing, ServiceOf(slice.OpenMetadata()))
	}
	for service := range s.account.Withheld() {
		delete(missing, service)
	}
	return len(missing) > 0
}

// listOne lists a single object.
func listOne[L interface {
	runtime.Object
	metav1.ListInterface
}](ctx context.Context, client informer.Client[L], options metav1.ListOptions) (L, error) {
	list, err := client.List(ctx, options)
	if err == nil {
		list.SetContinue("") // the server may not add more
	}
	return list, err
}

// SPDX-License-Identifier: Apache-2.0

// Package informer keeps copies of what the own API server has, and knows
// which of them are of before an outage.
//
// Informers of client-go try again on their own after an outage, up to a minute
// apart, and tell nobody which of them did. These are tried again every few
// seconds, list all objects again after their watch broke (see listwatch), and
// say so to their Group.
package informer

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/listwatch"
)

// retry is how long to wait before the API server is asked again: not long,
// because all services wait for it.
var retry = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 7, Cap: 4 * time.Second}

// retryReset is how often at most the back-off begins anew, whatever fails.
const retryReset = time.Minute

// Options say what an Informer holds of a resource.
type Options struct {
	// Resource is its name in the log.
	Resource string
	// Example is an object of the type that the client returns.
	Example runtime.Object
	// Narrow changes each request; nil for all objects.
	Narrow func(*metav1.ListOptions)
	// Transform is what is kept of an object; nil for all but the managed
	// fields. It is called with what it returned before, too.
	Transform cache.TransformFunc
	// Exports tells that what the local cluster exports depends on the objects.
	Exports bool
	// Indexers are those of the cache.
	Indexers cache.Indexers
}

// An Informer keeps the objects of one resource, and tells a handler of each
// that changes, one at a time. Handlers must return quickly. What is listed is
// always the newest there is, never what a cache of the API server has.
type Informer struct {
	group     *Group
	options   Options
	reflector *cache.Reflector
	indexer   cache.Indexer
	handler   cache.ResourceEventHandler
	synced    chan struct{}

	watch listwatch.Watch
	// failing tells that the log has the failure. The reflector sends one
	// request at a time.
	failing bool
}

// New returns an informer that runs not yet.
func New[L runtime.Object](group *Group, client listwatch.Client[L], options Options) *Informer {
	if options.Transform == nil {
		options.Transform = stripManagedFields
	}
	if options.Narrow == nil {
		options.Narrow = func(*metav1.ListOptions) {}
	}
	i := &Informer{
		group: group, options: options,
		indexer: cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, options.Indexers),
		handler: cache.ResourceEventHandlerFuncs{},
		synced:  make(chan struct{}),
	}
	backoff := retry
	i.reflector = cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			i.watch.Listing()
			i.options.Narrow(&options)
			options.ResourceVersion, options.ResourceVersionMatch = "", ""
			list, err := client.List(ctx, options)
			i.asked(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			i.options.Narrow(&options)
			w, err := i.watch.Open(ctx, options, func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				w, err := client.Watch(ctx, options)
				i.asked(ctx, err)
				return w, err
			})
			switch {
			case errors.Is(err, listwatch.ErrBroken):
				i.asked(ctx, err)
			case err == nil && options.SendInitialEvents == nil:
				// A watch that was refused with 429 goes on from where it was.
				i.group.begins(i)
				i.group.ends(i)
			}
			return w, err
		},
	}, options.Example, store{i}, cache.ReflectorOptions{Name: options.Resource, Backoff: &backoff})
	return i
}

// Handle sets whom to tell. It is to be called before Run.
func (i *Informer) Handle(handler cache.ResourceEventHandler) { i.handler = handler }

// Indexer is what is known. What it returns is shared and must not be changed.
// Nobody else writes to it.
func (i *Informer) Indexer() cache.Indexer { return i.indexer }

// Synced is closed once all objects were listed and the handler told of them.
func (i *Informer) Synced() <-chan struct{} { return i.synced }

// Run reads until the context ends, after which nobody waits for the informer.
// It is to be called once.
func (i *Informer) Run(ctx context.Context) {
	defer i.group.ends(i)
	delay := retry.DelayWithReset(clock.RealClock{}, retryReset)
	for ctx.Err() == nil {
		i.watch.Listing()
		if err := i.reflector.ListAndWatchWithContext(ctx); err != nil {
			klog.FromContext(ctx).V(4).Info("Reading anew", "resource", i.options.Resource, "err", err)
		}
		i.asked(ctx, listwatch.ErrBroken)
		select {
		case <-ctx.Done():
		case <-time.After(delay()):
		}
	}
}

// read tells whether all objects were listed once.
func (i *Informer) read() bool {
	select {
	case <-i.synced:
		return true
	default:
		return false
	}
}

// asked notes how a request went.
func (i *Informer) asked(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		i.failing = false
		return
	case !i.failing && !errors.Is(err, listwatch.ErrBroken) && !apierrors.IsInvalid(err): // which says that lists are not streamed here
		i.failing = true
		klog.FromContext(ctx).Error(err, "Cannot read the own cluster; trying again", "resource", i.options.Resource)
	}
	if i.read() {
		i.group.fails(i)
	}
}

func stripManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

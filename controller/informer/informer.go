// SPDX-License-Identifier: Apache-2.0

// Package informer caches objects of the local API server, and knows which caches predate an outage.
//
// After an outage, informers of client-go retry up to a minute apart and do not report it. These informers retry every
// few seconds, list again after a failed request, and report both to their FreshnessGate.
package informer

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// retry is short because all services wait for the API server.
var retry = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 7, Cap: 4 * time.Second}

// retryReset is the time after which the backoff is reset.
const retryReset = time.Minute

// errFailed makes a reflector list all objects again. The cause was reported by Informer.asked.
var errFailed = errors.New("the watch cannot be opened: all objects are listed again")

// A Client reads one resource. Typed and dynamic clients implement it.
type Client[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Options of an Informer.
type Options struct {
	// Resource names the resource in the log.
	Resource string
	// Example is an object of the type that the client returns.
	Example runtime.Object
	// LabelSelector restricts each request to some objects; empty means all.
	LabelSelector string
	// Transform returns an object as it is cached; nil removes the managed fields. It must be idempotent.
	Transform cache.TransformFunc
	// Exports is set if exports of the local cluster depend on the objects.
	Exports bool
	// Indexers are the indexers of the cache.
	Indexers cache.Indexers
}

// A Handler is called for each change of an object, one at a time: before is nil for a new object, after for a deleted one. It
// must return quickly, and not change the objects, which are shared. For an export.Packed, it gets only the metadata.
type Handler func(before, after metav1.Object)

// An Informer caches the objects of one resource, and calls a handler for each change. Lists are always the newest state, never
// from a cache of the API server.
type Informer struct {
	gate      *FreshnessGate
	options   Options
	reflector *cache.Reflector
	indexer   cache.Indexer
	synced    atomic.Bool
	handler   atomic.Pointer[Handler]

	// failing is set if the failure was logged. The reflector sends one request at a time.
	failing bool
}

// New returns an informer that does not run yet. Its transformed objects have type T.
func New[T any, L runtime.Object](gate *FreshnessGate, client Client[L], options Options) Of[T] {
	if options.Transform == nil {
		options.Transform = stripManagedFields
	}
	i := &Informer{
		gate: gate, options: options,
		indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, options.Indexers),
	}
	i.Handle(func(_, _ metav1.Object) {})
	backoff := retry
	i.reflector = cache.NewReflectorWithOptions(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = i.options.LabelSelector
			options.ResourceVersion, options.ResourceVersionMatch = "", ""
			list, err := client.List(ctx, options)
			i.asked(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = i.options.LabelSelector
			streamed := options.SendInitialEvents != nil // the watch begins with a list
			if streamed {
				options.ResourceVersion = ""
			}
			w, err := client.Watch(ctx, options)
			i.asked(ctx, err)
			if err != nil && !streamed {
				// The API server was unavailable: its etcd may have been restored from a backup, and sends nothing to a watch
				// from a resourceVersion that it has not reached.
				err = errFailed
			}
			return w, err
		},
	}, options.Example, store{i}, cache.ReflectorOptions{Name: options.Resource, Backoff: &backoff})
	return Of[T]{i}
}

// Handle replaces the handler. The new handler is not called for objects that are in the cache already.
func (i *Informer) Handle(handler Handler) { i.handler.Store(&handler) }

// tell calls the handler.
func (i *Informer) tell(before, after any) { (*i.handler.Load())(handled(before), handled(after)) }

// handled returns an object as handlers get it.
func handled(object any) metav1.Object {
	if slice, ok := object.(*export.Packed); ok {
		return slice.GetObjectMeta()
	}
	accessed, _ := object.(metav1.Object)
	return accessed
}

// Indexer returns the cache. Its objects are shared and must not be changed.
func (i *Informer) Indexer() cache.Indexer { return i.indexer }

// Run fills the cache until the context ends; then the gate no longer waits for this informer. Call Run once.
func (i *Informer) Run(ctx context.Context) {
	defer i.gate.set(i, false)
	_ = retry.DelayWithReset(clock.RealClock{}, retryReset).Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if err := i.reflector.ListAndWatchWithContext(ctx); err != nil {
			klog.FromContext(ctx).V(4).Info("Reading anew", "resource", i.options.Resource, "err", err)
		}
		i.fell(ctx)
		return false, nil
	})
}

// HasSynced reports whether all objects are in the cache. The handler may still be called for them.
func (i *Informer) HasSynced() bool { return i.synced.Load() }

// asked notes the result of a request.
func (i *Informer) asked(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		i.failing = false
		return
	case !i.failing && !apierrors.IsInvalid(err): // invalid: this API server does not stream lists
		i.failing = true
		klog.FromContext(ctx).Error(err, "Cannot read the local cluster; retrying", "resource", i.options.Resource)
	}
	i.fell(ctx)
}

// fell notes that the cache is behind, unless nothing was listed yet or the context has ended.
func (i *Informer) fell(ctx context.Context) {
	if i.HasSynced() && ctx.Err() == nil {
		i.gate.set(i, true)
	}
}

func stripManagedFields(object any) (any, error) {
	object.(metav1.Object).SetManagedFields(nil)
	return object, nil
}

// Of is an Informer that caches objects of a type. They are shared and must not be changed.
type Of[T any] struct{ *Informer }

// Get returns an object, or nil if it does not exist.
func (o Of[T]) Get(key types.NamespacedName) (object T) {
	found, _, _ := o.indexer.GetByKey(cache.ObjectName(key).String()) // an indexer returns no error
	object, _ = found.(T)
	return object
}

// List returns all objects, in no order.
func (o Of[T]) List() []T { return typed[T](o.indexer.List()) }

// ByIndex returns the objects with a value in an index, in no order.
func (o Of[T]) ByIndex(index, value string) []T {
	objects, _ := o.indexer.ByIndex(index, value) // only an unknown index is an error
	return typed[T](objects)
}

func typed[T any](objects []any) []T {
	result := make([]T, len(objects))
	for i, object := range objects {
		result[i] = object.(T)
	}
	return result
}

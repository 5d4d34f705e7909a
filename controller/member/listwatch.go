// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// readable is the part of a typed client that a reflector needs.
type readable[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// selected lists and watches what a typed client reads, narrowed by the
// server. outcome is told how each request went: a reflector tries some
// failures again without returning them.
func selected[L runtime.Object](client readable[L], narrow func(*metav1.ListOptions), outcome func(error)) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			narrow(&options)
			list, err := client.List(ctx, options)
			outcome(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			narrow(&options)
			w, err := client.Watch(ctx, options)
			streamed := options.SendInitialEvents != nil && *options.SendInitialEvents
			if !streamed || !apierrors.IsInvalid(err) {
				// A server that cannot stream a list is asked for a plain
				// one next.
				outcome(err)
			}
			return w, err
		},
	}
}

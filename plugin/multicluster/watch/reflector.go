// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// retry is how long to wait before an API server is asked again: not long, because names wait for it.
var retry = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 7, Cap: 4 * time.Second}

// lister lists and watches one resource.
type lister struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
}

// reflector keeps the inputs like the API server's objects of one resource.
type reflector struct {
	resource  Resource
	reflector *cache.Reflector
}

// reflectors are those that the options ask for.
func (s *Source) reflectors(clients *clients, options Options) []reflector {
	var all []reflector
	for i, resource := range options.importResources() {
		from := clients.imports[resource].list(options.Labels)
		if i > 0 {
			from = s.optional(resource, from)
		}
		all = append(all, s.reflector(resource, &mcsv1beta1.ServiceImport{}, from))
	}
	if options.FallbackServices {
		all = append(all, s.reflector(Services, &corev1.Service{}, s.optional(Services, clients.services())))
	}
	if !options.NoEndpoints {
		all = append(all, s.reflector(EndpointSlices, &discoveryv1.EndpointSlice{}, clients.endpointSlices(withServiceName)))
	}
	if options.mirrors() {
		all = append(all, s.reflector(MirroredEndpointSlices, &discoveryv1.EndpointSlice{}, clients.endpointSlices(mirroredOnly)))
	}
	if options.NamespaceLabels != "" {
		all = append(all, s.reflector(Namespaces, &corev1.Namespace{}, clients.namespaces(options.NamespaceLabels)))
	}
	if options.Zones {
		all = append(all, s.reflector(Nodes, &corev1.Node{}, clients.nodes()))
	}
	return all
}

// optional is a resource that nothing waits for where the API server does not have it, or does not let us see it. It
// says the latter of a group that it does not have, too, to those who have no right on it.
func (s *Source) optional(resource Resource, from lister) lister {
	note := func(err error) {
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			s.listed(resource)
		}
	}
	list, watch := from.list, from.watch
	from.list = func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		objects, err := list(ctx, options)
		note(err)
		return objects, err
	}
	from.watch = func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
		w, err := watch(ctx, options)
		note(err)
		return w, err
	}
	return from
}

func (s *Source) reflector(resource Resource, example runtime.Object, from lister) reflector {
	store := s.store(resource)
	note := func(err error) {
		if errors.Is(err, context.Canceled) {
			return
		}
		store.asked(err)
		s.observer.Asked(resource, err)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			s.refused(resource)
		}
	}
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := from.list(ctx, options)
			note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			w, err := from.watch(ctx, options)
			note(err)
			return w, err
		},
	}
	logger := logr.Discard() // the observer is told of failures
	backoff := retry
	return reflector{resource, cache.NewReflectorWithOptions(listWatch, example, store,
		cache.ReflectorOptions{Name: string(resource), Logger: &logger, Backoff: &backoff},
	)}
}

// run lists and watches until the context ends.
func (r reflector) run(ctx context.Context) {
	r.reflector.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

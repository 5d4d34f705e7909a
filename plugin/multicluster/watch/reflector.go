// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"reflect"
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
)

// retry is the backoff between two attempts to list or watch a resource. It never exceeds 3 s: the resources are read
// again independently after an outage, and in between an answer can combine a new import with old slices.
var retry = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 2 * time.Second}

// errClosed is the error of a watch whose connection ended before a response, which client-go reports as an empty
// watch.
var errClosed = errors.New("the connection was closed before the API server answered")

// emptyWatch is the type of such a watch.
var emptyWatch = reflect.TypeOf(apiwatch.NewEmptyWatch())

// lister lists and watches one resource.
type lister struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (apiwatch.Interface, error)
}

// scope is what one reflector reads: a resource in one namespace, or in all if the namespace is empty.
type scope struct {
	resource  Resource
	namespace string
}

// reflector keeps the inputs like the API server's objects of one scope.
type reflector struct {
	scope
	reflector *cache.Reflector
}

// reflectors returns the reflectors that the options need.
func (s *Source) reflectors(clients *clients, options Options) []reflector {
	var all []reflector
	for _, namespace := range options.watchedNamespaces() {
		all = append(all, s.namespaced(clients, options, namespace)...)
	}
	if options.NamespaceLabels != "" {
		of := scope{resource: Namespaces}
		all = append(all, s.reflector(of, &corev1.Namespace{},
			listerOf(clients.core.Namespaces(), options.NamespaceLabels, "")))
	}
	if options.Zones {
		all = append(all, s.reflector(scope{resource: Nodes}, &corev1.Node{}, listerOf(clients.core.Nodes(), "", "")))
	}
	return all
}

// namespaced are the reflectors of one namespace, or of all if it is empty.
func (s *Source) namespaced(clients *clients, options Options, namespace string) []reflector {
	var all []reflector
	for i, resource := range options.importResources() {
		of := scope{resource, namespace}
		from := clients.imports[resource].list(options.selects(options.Labels), namespace)
		if i > 0 {
			from = s.optional(of, from)
		}
		all = append(all, s.reflector(of, new(importObject), from))
	}
	if options.FallbackServices {
		of := scope{Services, namespace}
		from := listerOf(clients.core.Services(namespace), "", servicesWithIP)
		all = append(all, s.reflector(of, &corev1.Service{}, s.optional(of, from)))
	}
	slices := clients.discovery.EndpointSlices(namespace)
	if !options.NoEndpoints {
		all = append(all, s.reflector(scope{EndpointSlices, namespace}, &discoveryv1.EndpointSlice{},
			listerOf(slices, options.selects(withServiceName), "")))
	}
	if options.mirrors() {
		all = append(all, s.reflector(scope{MirroredEndpointSlices, namespace}, &discoveryv1.EndpointSlice{},
			listerOf(slices, mirroredOnly, "")))
	}
	return all
}

// optional marks a resource that nothing waits for if it is missing or forbidden. For a missing group an API server
// answers "forbidden" to clients without rights on it.
func (s *Source) optional(of scope, from lister) lister {
	note := func(err error) {
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			s.listed(of)
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

func (s *Source) reflector(of scope, example runtime.Object, from lister) reflector {
	store := s.store(of)
	from = unlessRestored(from)
	note := func(err error) {
		if errors.Is(err, context.Canceled) {
			return
		}
		store.asked(err)
		s.observer.Asked(of.resource, of.namespace, err)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			s.refused(of)
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
			switch {
			case err == nil && reflect.TypeOf(w) == emptyWatch:
				note(errClosed)
			case !lacksWatchList(options, err):
				note(err)
			}
			return w, err
		},
	}
	logger := logr.Discard() // the observer is notified of failures
	backoff := retry
	return reflector{of, cache.NewReflectorWithOptions(listWatch, example, store,
		cache.ReflectorOptions{Name: string(of.resource), Logger: &logger, Backoff: &backoff})}
}

// lacksWatchList reports whether the API server refused a watch only because it does not stream lists: Kubernetes
// before 1.32, and later ones without the feature gate WatchList, answer 422. The reflector then lists, which is no
// failure.
func lacksWatchList(options metav1.ListOptions, err error) bool {
	return options.SendInitialEvents != nil && apierrors.IsInvalid(err)
}

// run lists and watches until the context ends.
func (r reflector) run(ctx context.Context) {
	r.reflector.RunWithContext(klog.NewContext(ctx, logr.Discard()))
}

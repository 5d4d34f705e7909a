// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/netip"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/test/soak/outcome"
)

// watch tells the judge what the cluster's own API server shows of imports and copies, until the context ends.
func (c *cluster) watch(ctx context.Context) {
	slices := c.Client().DiscoveryV1().EndpointSlices(namespace)
	follow(ctx, &discoveryv1.EndpointSlice{},
		func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = v1beta1.LabelSourceCluster
			return slices.List(ctx, options)
		},
		func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.LabelSelector = v1beta1.LabelSourceCluster
			return slices.Watch(ctx, options)
		},
		func(slice *discoveryv1.EndpointSlice, _ bool) {
			var addresses []netip.Addr
			for i := range slice.Endpoints {
				addresses = append(addresses, outcome.Addresses(slice.Endpoints[i].Addresses)...)
			}
			c.judge.SeesCopy(c.Name(), slice.Labels[v1beta1.LabelSourceCluster], slice.Labels[v1beta1.LabelServiceName],
				addresses, time.Now())
		})
	imports := c.mcs.MulticlusterV1beta1().ServiceImports(namespace)
	follow(ctx, &v1beta1.ServiceImport{},
		func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return imports.List(ctx, options)
		},
		func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			return imports.Watch(ctx, options)
		},
		func(serviceImport *v1beta1.ServiceImport, gone bool) {
			ips := outcome.Addresses(serviceImport.Spec.IPs)
			if gone {
				ips = nil
			}
			c.judge.SeesIPs(c.Name(), serviceImport.Name, ips, time.Now())
		})
}

// retry is how soon a watch that ended begins anew. It is much sooner than that
// of CoreDNS: what an answer shows must have been seen here.
var retry = wait.Backoff{
	Duration: 50 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 500 * time.Millisecond,
}

// follow calls saw for each object that is there, changes or goes.
func follow[T runtime.Object](ctx context.Context, example T,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error),
	watch func(context.Context, metav1.ListOptions) (apiwatch.Interface, error),
	saw func(object T, gone bool),
) {
	backoff := retry
	reflector := cache.NewReflectorWithOptions(&cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: watch},
		example,
		&seen[T]{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), saw: saw},
		cache.ReflectorOptions{Backoff: &backoff})
	go reflector.RunWithContext(ctx)
}

// seen is the store of a reflector, which tells what comes and goes.
type seen[T runtime.Object] struct {
	cache.Store
	saw func(object T, gone bool)
}

func (s *seen[T]) Add(object any) error {
	s.saw(object.(T), false)
	return s.Store.Add(object)
}

func (s *seen[T]) Update(object any) error {
	s.saw(object.(T), false)
	return s.Store.Update(object)
}

func (s *seen[T]) Delete(object any) error {
	s.saw(object.(T), true)
	return s.Store.Delete(object)
}

func (s *seen[T]) Replace(objects []any, version string) error {
	before := s.List()
	if err := s.Store.Replace(objects, version); err != nil {
		return err
	}
	for _, object := range before {
		if _, still, err := s.Get(object); err != nil {
			return err
		} else if !still {
			s.saw(object.(T), true)
		}
	}
	for _, object := range objects {
		s.saw(object.(T), false)
	}
	return nil
}

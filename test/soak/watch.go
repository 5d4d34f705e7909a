// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/netip"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// watch tells the judge what the cluster's own API server shows of imports and
// copies, until the context ends.
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
				addresses = append(addresses, parsed(slice.Endpoints[i].Addresses)...)
			}
			c.judge.SeesCopy(c.Name(), slice.Labels[v1beta1.LabelSourceCluster], slice.Labels[v1beta1.LabelServiceName], addresses, time.Now())
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
			ips := parsed(serviceImport.Spec.IPs)
			if gone {
				ips = nil
			}
			c.judge.SeesIPs(c.Name(), serviceImport.Name, ips, time.Now())
		})
}

// follow calls saw for each object that is there, changes or goes.
func follow[T runtime.Object](ctx context.Context, example T,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error),
	watch func(context.Context, metav1.ListOptions) (apiwatch.Interface, error),
	saw func(object T, gone bool),
) {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: watch},
		ObjectType:    example,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { saw(object.(T), false) },
			UpdateFunc: func(_, object any) { saw(object.(T), false) },
			DeleteFunc: func(object any) {
				if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
					object = tombstone.Obj
				}
				saw(object.(T), true)
			},
		},
	})
	go informer.RunWithContext(ctx)
}

// parsed are the addresses among texts.
func parsed(texts []string) []netip.Addr {
	var addresses []netip.Addr
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

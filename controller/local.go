// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// Indexes of the EndpointSlices and Services of the own cluster.
const (
	// byService: slices that Kubernetes, or a person, has for a Service.
	byService = "service"
	// byMultiClusterService: slices, and derived Services, that this controller
	// made for a service.
	byMultiClusterService = "multi-cluster-service"
	// byHand: slices that somebody else made for a service.
	byHand = "by-hand"
	// bySourceCluster: slices that this controller made for a cluster.
	bySourceCluster = "source-cluster"
)

// local is the caches of the own cluster, the MCS API apart. What they return
// is shared and must not be changed.
type local struct {
	services   *informer.Informer
	slices     *informer.Informer
	namespaces *informer.Informer
	secrets    *informer.Informer
	nodes      *informer.Informer
}

func newLocal(client kubernetes.Interface, metadataClient metadata.Interface, group *informer.Group, namespace string) *local {
	core, all := client.CoreV1(), metav1.NamespaceAll
	return &local{
		services: informer.New(group, core.Services(all), informer.Options{
			Resource: "Services", Example: &corev1.Service{}, Exports: true,
			Indexers: cache.Indexers{
				byMultiClusterService: func(object any) ([]string, error) {
					service, ok := object.(*corev1.Service)
					if !ok || service.Labels[export.LabelService] == "" || !export.IsManaged(service) {
						return nil, nil
					}
					return []string{types.NamespacedName{Namespace: service.Namespace, Name: service.Labels[export.LabelService]}.String()}, nil
				},
			},
		}),
		slices: informer.New(group, client.DiscoveryV1().EndpointSlices(all), informer.Options{
			Resource: "EndpointSlices", Example: &discoveryv1.EndpointSlice{}, Exports: true, Indexers: sliceIndexers,
		}),
		namespaces: informer.New(group, core.Namespaces(), informer.Options{Resource: "Namespaces", Example: &corev1.Namespace{}}),
		secrets: informer.New(group, core.Secrets(namespace), informer.Options{
			Resource: "Secrets", Example: &corev1.Secret{},
			Narrow: func(options *metav1.ListOptions) { options.LabelSelector = member.ClusterLabel },
		}),
		nodes: newNodes(metadataClient, group),
	}
}

var sliceIndexers = cache.Indexers{
	byService: func(object any) ([]string, error) {
		return indexed(object, func(slice *discoveryv1.EndpointSlice) string {
			return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[export.LabelKubernetesService]}.String()
		}, func(slice *discoveryv1.EndpointSlice) bool {
			return slice.Labels[export.LabelKubernetesService] != "" && !export.IsManaged(slice)
		})
	},
	byMultiClusterService: func(object any) ([]string, error) {
		return indexed(object, func(slice *discoveryv1.EndpointSlice) string {
			return member.ServiceOf(slice).String()
		}, func(slice *discoveryv1.EndpointSlice) bool {
			return slice.Labels[export.LabelService] != "" && export.IsManaged(slice)
		})
	},
	byHand: func(object any) ([]string, error) {
		return indexed(object, func(slice *discoveryv1.EndpointSlice) string {
			return member.ServiceOf(slice).String()
		}, func(slice *discoveryv1.EndpointSlice) bool {
			return slice.Labels[export.LabelService] != "" && !export.IsManaged(slice)
		})
	},
	bySourceCluster: func(object any) ([]string, error) {
		return indexed(object, func(slice *discoveryv1.EndpointSlice) string {
			return slice.Labels[export.LabelSourceCluster]
		}, func(slice *discoveryv1.EndpointSlice) bool {
			return slice.Labels[export.LabelService] != "" && export.IsManaged(slice)
		})
	},
}

func indexed(object any, value func(*discoveryv1.EndpointSlice) string, included func(*discoveryv1.EndpointSlice) bool) ([]string, error) {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok || !included(slice) {
		return nil, nil
	}
	return []string{value(slice)}, nil
}

func (l *local) informers() []*informer.Informer {
	return []*informer.Informer{l.services, l.slices, l.namespaces, l.secrets, l.nodes}
}

// run fills the caches until the context ends.
func (l *local) run(ctx context.Context, group *sync.WaitGroup) {
	for _, each := range l.informers() {
		group.Go(func() { each.Run(ctx) })
	}
}

// wait returns true once the caches are full and their handlers told so, false
// where the context ended before.
func (l *local) wait(ctx context.Context) bool {
	for _, each := range l.informers() {
		select {
		case <-ctx.Done():
			return false
		case <-each.Synced():
		}
	}
	return true
}

// shown is up to where the caches show what exists.
func (l *local) shown() apply.Versions {
	return apply.Versions{
		Services:       l.services.Indexer().LastStoreSyncResourceVersion(),
		EndpointSlices: l.slices.Indexer().LastStoreSyncResourceVersion(),
	}
}

func (l *local) service(key types.NamespacedName) *corev1.Service {
	return get[*corev1.Service](l.services, key.String())
}

func (l *local) namespace(name string) *corev1.Namespace {
	return get[*corev1.Namespace](l.namespaces, name)
}

// kubeSystemUID tells the own cluster from others; empty before it is known.
func (l *local) kubeSystemUID() string {
	if namespace := l.namespace("kube-system"); namespace != nil {
		return string(namespace.UID)
	}
	return ""
}

// slicesOf returns the slices that Kubernetes has for a Service.
func (l *local) slicesOf(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	return indexedBy[*discoveryv1.EndpointSlice](l.slices, byService, service.String())
}

// madeFor returns the slices that the controller made for a service.
func (l *local) madeFor(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	return indexedBy[*discoveryv1.EndpointSlice](l.slices, byMultiClusterService, service.String())
}

// handMadeFor returns the slices that somebody else made for a service.
func (l *local) handMadeFor(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	return indexedBy[*discoveryv1.EndpointSlice](l.slices, byHand, service.String())
}

// derivedFor returns the Services that the controller made for a service.
func (l *local) derivedFor(service types.NamespacedName) []*corev1.Service {
	return indexedBy[*corev1.Service](l.services, byMultiClusterService, service.String())
}

// madeFrom returns the slices that the controller made for a cluster.
func (l *local) madeFrom(cluster string) []*discoveryv1.EndpointSlice {
	return indexedBy[*discoveryv1.EndpointSlice](l.slices, bySourceCluster, cluster)
}

// servicesFrom returns the services that the controller has slices of a
// cluster for.
func (l *local) servicesFrom(cluster string) map[types.NamespacedName]struct{} {
	services := map[types.NamespacedName]struct{}{}
	for _, slice := range l.madeFrom(cluster) {
		services[member.ServiceOf(slice)] = struct{}{}
	}
	return services
}

func (l *local) credentials() []*corev1.Secret { return list[*corev1.Secret](l.secrets) }

func get[T any](from *informer.Informer, key string) (object T) {
	found, exists, err := from.Indexer().GetByKey(key)
	if err == nil && exists {
		object, _ = found.(T)
	}
	return object
}

func indexedBy[T any](from *informer.Informer, index, value string) []T {
	objects, err := from.Indexer().ByIndex(index, value)
	if err != nil {
		return nil // only an unknown index is an error
	}
	return typed[T](objects)
}

func list[T any](from *informer.Informer) []T {
	return typed[T](from.Indexer().List())
}

func typed[T any](objects []any) []T {
	result := make([]T, 0, len(objects))
	for _, object := range objects {
		if one, ok := object.(T); ok {
			result = append(result, one)
		}
	}
	return result
}

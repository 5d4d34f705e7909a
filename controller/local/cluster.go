// SPDX-License-Identifier: Apache-2.0

// Package local reads the local cluster: its id, the IP families of its Services, and the objects on which the controller
// depends, including those of the MCS API.
package local

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/limits"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// byAll is the index of EndpointSlices and Services, with these kinds of values.
const (
	byAll = "all"
	// byKubernetesService: EndpointSlices of a Service, not managed by this controller.
	byKubernetesService = "kubernetes-service:"
	// byManagedService: EndpointSlices and derived Services that this controller made for a multi-cluster service.
	byManagedService = "managed-service:"
	// bySourceCluster: EndpointSlices that this controller made, by the cluster that exports the endpoints.
	bySourceCluster = "source-cluster:"

	// byClusterIP indexes Services by their IPs.
	byClusterIP = "cluster-ip"
)

// nodesWait is how long HasSynced waits for Nodes: without them, a restart would revert hints and refusals of addresses.
// Nodes are optional, because the right to list them may be missing.
const nodesWait = 5 * time.Second

// A Cluster has the caches of the local cluster. The objects that its methods return, except EndpointSlices, are shared and
// must not be changed.
type Cluster struct {
	Services       informer.Of[*corev1.Service]
	EndpointSlices informer.Of[*export.Packed]
	Namespaces     informer.Of[*corev1.Namespace]
	Secrets        informer.Of[*corev1.Secret]
	Nodes          informer.Of[*Node]

	// nodesUntil is until when HasSynced waits for Nodes.
	nodesUntil time.Time
}

// New returns the caches, which are empty until Start. Secrets are read in one namespace, and only if they carry
// member.ClusterLabel. addresses is the type of the addresses by which other networks reach nodes.
func New(client kubernetes.Interface, gate *informer.FreshnessGate, namespace string, addresses corev1.NodeAddressType) *Cluster {
	core, all := client.CoreV1(), metav1.NamespaceAll
	return &Cluster{
		Services: informer.New[*corev1.Service](gate, core.Services(all), informer.Options{
			Resource: "Services", Example: &corev1.Service{}, Exports: true,
			Indexers: cache.Indexers{byAll: indexed, byClusterIP: clusterIPs},
		}),
		EndpointSlices: informer.New[*export.Packed](gate, client.DiscoveryV1().EndpointSlices(all), informer.Options{
			Resource: "EndpointSlices", Example: &discoveryv1.EndpointSlice{}, Exports: true,
			Transform: export.PackSlice, Indexers: cache.Indexers{byAll: indexed},
		}),
		Namespaces: informer.New[*corev1.Namespace](gate, core.Namespaces(), informer.Options{
			Resource: "Namespaces", Example: &corev1.Namespace{},
		}),
		Secrets: informer.New[*corev1.Secret](gate, core.Secrets(namespace), informer.Options{
			Resource: "Secrets", Example: &corev1.Secret{},
			LabelSelector: member.ClusterLabel,
		}),
		Nodes: newNodes(core.Nodes(), addresses),
	}
}

// indexed returns the values of an object in the index byAll. There is one index for all of them, so that a packed slice is
// opened only once. Each value begins with its kind.
func indexed(object any) (values []string, err error) {
	of, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	service, managed := export.ServiceOf(of), export.IsManaged(of)
	own := types.NamespacedName{Namespace: of.GetNamespace(), Name: of.GetLabels()[export.LabelKubernetesService]}
	switch {
	case managed && service.Name != "":
		values = []string{byManagedService + service.String(), bySourceCluster + of.GetLabels()[export.LabelSourceCluster]}
	case !managed && own.Name != "":
		values = []string{byKubernetesService + own.String()}
	}
	return values, nil
}

// clusterIPs indexes Services by their IPs.
func clusterIPs(object any) ([]string, error) {
	service, ok := object.(*corev1.Service)
	if !ok || service.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil, nil
	}
	return service.Spec.ClusterIPs, nil
}

// Start fills the caches until the context ends, in goroutines of the group.
func (c *Cluster) Start(ctx context.Context, group *sync.WaitGroup) {
	for _, each := range []interface{ Run(context.Context) }{c.Services, c.EndpointSlices, c.Namespaces, c.Secrets, c.Nodes} {
		group.Go(func() { each.Run(ctx) })
	}
	c.nodesUntil = time.Now().Add(nodesWait)
}

// HasSynced reports whether the caches are full. From 5 s after Start on, Nodes do not count.
func (c *Cluster) HasSynced() bool {
	return c.Services.HasSynced() && c.EndpointSlices.HasSynced() && c.Namespaces.HasSynced() && c.Secrets.HasSynced() &&
		(c.Nodes.HasSynced() || time.Now().After(c.nodesUntil))
}

// Namespace returns a namespace, or nil if it does not exist.
func (c *Cluster) Namespace(name string) *corev1.Namespace {
	return c.Namespaces.Get(types.NamespacedName{Name: name})
}

// KubeSystemUID identifies the local cluster; empty before it is known.
func (c *Cluster) KubeSystemUID() string {
	return string(ptr.Deref(c.Namespace(metav1.NamespaceSystem), corev1.Namespace{}).UID)
}

// Credentials returns the Secrets with the credentials of members.
func (c *Cluster) Credentials() []*corev1.Secret { return c.Secrets.List() }

// KubernetesSlices returns the EndpointSlices of a Service of the local cluster.
func (c *Cluster) KubernetesSlices(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	return export.OpenAll(c.packed(byKubernetesService, service.String()))
}

// ManagedSlices returns the EndpointSlices that this controller made for a multi-cluster service.
func (c *Cluster) ManagedSlices(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	return export.OpenAll(c.packed(byManagedService, service.String()))
}

// Encoded returns how large the KubernetesSlices and the ManagedSlices of a service are in encoded form, without decoding
// them.
func (c *Cluster) Encoded(service types.NamespacedName) int {
	return export.EncodedSize(c.packed(byKubernetesService, service.String())) +
		export.EncodedSize(c.packed(byManagedService, service.String()))
}

// packed returns slices without opening them: their metadata alone costs less, and so do slices that are opened one at a time.
func (c *Cluster) packed(kind, value string) []*export.Packed {
	return c.EndpointSlices.ByIndex(byAll, kind+value)
}

// OtherHolders returns the IPs that Services other than derived have. If the import is adopted, Services in its namespace that
// the controller does not manage do not count: the import may have the IP of one, which frees it in the end.
func (c *Cluster) OtherHolders(derived types.NamespacedName, ips []string, adopted bool) (held []string) {
	for _, ip := range ips {
		for _, service := range c.Services.ByIndex(byClusterIP, ip) {
			before := adopted && service.Namespace == derived.Namespace && !export.IsManaged(service)
			if !before && (service.Namespace != derived.Namespace || service.Name != derived.Name) {
				held = append(held, ip)
			}
		}
	}
	return held
}

// ManagedServices returns the multi-cluster services for which this controller made EndpointSlices or a derived Service. A
// service may occur twice.
func (c *Cluster) ManagedServices() (services []types.NamespacedName) {
	for _, each := range []cache.Indexer{c.EndpointSlices.Indexer(), c.Services.Indexer()} {
		for _, value := range each.ListIndexFuncValues(byAll) {
			key, managed := strings.CutPrefix(value, byManagedService)
			if namespace, name, err := cache.SplitMetaNamespaceKey(key); managed && err == nil {
				services = append(services, types.NamespacedName{Namespace: namespace, Name: name})
			}
		}
	}
	return services
}

// Imported returns the services that are imported from a cluster, with the weight of the copies that exist, in a new
// map.
func (c *Cluster) Imported(cluster string) map[types.NamespacedName]limits.Weight {
	services := map[types.NamespacedName]limits.Weight{}
	for _, each := range c.packed(bySourceCluster, cluster) {
		slice := each.Open() // one at a time
		service := export.ServiceOf(slice)
		services[service] = services[service].Plus(limits.WeightOf(slice))
	}
	return services
}

// ServicesFrom returns the services that are imported from a cluster, or published by it if it is the local cluster, in
// a new map.
func (c *Cluster) ServicesFrom(cluster string) map[types.NamespacedName]struct{} {
	services := map[types.NamespacedName]struct{}{}
	for _, slice := range c.packed(bySourceCluster, cluster) {
		services[export.ServiceOf(slice.GetObjectMeta())] = struct{}{}
	}
	return services
}

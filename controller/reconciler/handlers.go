// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/local"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// This file maps changes to the affected services. Over-enqueueing only costs a reconcile; a missed key would lose a
// change.

// Retry enqueues a service without the backoff of its failures.
func (r *Reconciler) Retry(service types.NamespacedName) {
	r.queue.Forget(service)
	r.queue.Add(service)
}

// ServiceChanged implements member.Handler.
func (r *Reconciler) ServiceChanged(service types.NamespacedName) { r.queue.Add(service) }

// onProperties handles the properties of the local cluster, on which all services depend.
func (r *Reconciler) onProperties() {
	r.Tracker.SetLocal(r.Properties.All()[scope.ClusterSetProperty], r.Properties.Network())
	r.enqueueAll("", 0)
}

// MemberChanged implements member.Handler, and handles changes that the Tracker reports.
func (r *Reconciler) MemberChanged(cluster string) {
	r.enqueueCluster(cluster)
	// Whether they are for a member depends on the set of members and on their properties.
	r.enqueueExports(func(e *v1beta1.ServiceExport) bool { return e.Annotations[export.AnnotationClusters] != "" })
}

// enqueueExports enqueues the exports of the local cluster for which concerned returns true.
func (r *Reconciler) enqueueExports(concerned func(*v1beta1.ServiceExport) bool) {
	for _, each := range r.API.Exports.List() {
		if concerned(each) {
			r.queue.Add(types.NamespacedName{Namespace: each.Namespace, Name: each.Name})
		}
	}
}

// enqueueShown enqueues a service because the caches show an object that this controller may have written or, if it is gone, no
// longer show it.
func (r *Reconciler) enqueueShown(service types.NamespacedName, object metav1.Object, gone bool) {
	version := apply.VersionOf(object)
	if gone {
		version.ResourceVersion = ""
	}
	if r.echoes.sees(service, version) {
		r.queue.AddLimited(service) // so that another writer cannot cause passes without end
	}
}

// onExportOrImport enqueues the service of a ServiceExport or ServiceImport.
func (r *Reconciler) onExportOrImport(object metav1.Object, gone bool) {
	r.enqueueShown(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, object, gone)
}

// onService enqueues the service that exports a Service, the service that it is derived for, and the service for which a
// derived Service, with or without node ports, needs its name.
func (r *Reconciler) onService(object metav1.Object, gone bool) {
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	service := export.ServiceOf(object)
	if service.Name != "" { // of this controller, unless another writer removed the managed-by label
		r.enqueueShown(service, object, gone)
	}
	if export.IsManaged(object) && (key.Name == export.DerivedServiceName(service) || key.Name == export.NodePortServiceName(service)) {
		return
	}
	if r.API.Exports.Get(key) != nil {
		r.queue.Add(key)
	}
	if gone {
		for _, each := range r.API.Imports.List() { // the derived Service of an adopted one may get its IP now
			if each.Namespace == key.Namespace && merge.Adopted(each) {
				r.Retry(types.NamespacedName{Namespace: each.Namespace, Name: each.Name})
			}
		}
	}
	if !strings.HasPrefix(key.Name, export.DerivedPrefix) {
		return
	}
	for of := range r.services(key.Namespace) {
		if export.DerivedServiceName(of) == key.Name || export.NodePortServiceName(of) == key.Name {
			r.queue.Add(of)
		}
	}
}

// kubernetesSlices is the managed-by label of the EndpointSlices of Services with a selector.
const kubernetesSlices = "endpointslice-controller.k8s.io"

// onSlice enqueues the multi-cluster service for which an EndpointSlice was made, or the exported Service to which it
// belongs.
func (r *Reconciler) onSlice(object metav1.Object, gone bool) {
	// Kubernetes copies the labels of the Service with node ports to its slices.
	if service := export.ServiceOf(object); service.Name != "" && object.GetLabels()[export.LabelSliceManagedBy] != kubernetesSlices {
		r.enqueueShown(service, object, gone)
	}
	of := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetLabels()[export.LabelKubernetesService]}
	if r.API.Exports.Get(of) != nil {
		r.queue.Add(of)
	}
	if of == local.APIServer {
		r.enqueueAll("", 0) // endpoints of members must not have its addresses
	}
}

// onNamespace enqueues all services of a namespace that changed. The annotations of the controller's namespace concern all exports.
func (r *Reconciler) onNamespace(before, after metav1.Object) {
	current := after
	if after == nil {
		current = before
	}
	r.enqueueAll(current.GetName(), 0)
	if current.GetName() == r.Namespace {
		r.enqueueCluster(r.Cluster)
	}
}

// nodesWithin is the time in which all services are reconciled after a node came, went or got another zone: with many imports and
// an autoscaler, other changes would wait for them.
const nodesWithin = time.Minute

// onNode enqueues the services that a change of the nodes concerns: hints depend on the zones, exports with node ports on all
// properties of a node, and all services on addresses, because endpoints of members must not have those of nodes or their pods.
func (r *Reconciler) onNode(before, after metav1.Object) {
	old, existed := before.(*local.Node)
	current, exists := after.(*local.Node)
	moved := !existed || !exists || old.Zone != current.Zone || !slices.Equal(old.Own, current.Own) ||
		!slices.Equal(old.PodCIDRs, current.PodCIDRs)
	if moved {
		r.enqueueAll("", nodesWithin)
	}
	if moved || old.Ready != current.Ready || !slices.Equal(old.Addresses, current.Addresses) {
		r.enqueueExposed(export.ExposeNodePort)
	}
}

// enqueueExposed enqueues the exports with one of these Exposures.
func (r *Reconciler) enqueueExposed(by ...export.Exposure) {
	from := r.exporter(nil)
	r.enqueueExports(func(e *v1beta1.ServiceExport) bool {
		exposure, _ := from.Exposure(e)
		return slices.Contains(by, exposure)
	})
}

// enqueueCluster enqueues all services that a cluster exports or exported.
func (r *Reconciler) enqueueCluster(cluster string) {
	for service := range r.Local.ServicesFrom(cluster) {
		r.queue.Add(service)
	}
	if m := r.Members.Get(cluster); m != nil {
		for _, service := range m.Services() {
			r.queue.Add(service)
		}
	}
}

// enqueueAll enqueues all services of a namespace, empty for all, spread over a time.
func (r *Reconciler) enqueueAll(namespace string, within time.Duration) {
	for service := range r.services(namespace) {
		r.queue.AddAfter(service, time.Duration(rand.Int64N(int64(within)+1)))
	}
}

// services returns all services of a namespace, empty for all, that are exported, imported, or were.
func (r *Reconciler) services(namespace string) map[types.NamespacedName]struct{} {
	services := r.Exported()
	for _, each := range r.API.Imports.List() {
		services[types.NamespacedName{Namespace: each.Namespace, Name: each.Name}] = struct{}{}
	}
	for _, service := range r.Local.ManagedServices() {
		services[service] = struct{}{}
	}
	for _, m := range r.Members.List() {
		for _, service := range m.Services() {
			services[service] = struct{}{}
		}
	}
	maps.DeleteFunc(services, func(of types.NamespacedName, _ struct{}) bool { return namespace != "" && of.Namespace != namespace })
	return services
}

// Exported returns the services that the local cluster exports, or publishes slices for, in a new map.
func (r *Reconciler) Exported() map[types.NamespacedName]struct{} {
	services := r.Local.ServicesFrom(r.Cluster)
	for _, each := range r.API.Exports.List() {
		services[types.NamespacedName{Namespace: each.Namespace, Name: each.Name}] = struct{}{}
	}
	return services
}

// onChange returns a handler that calls changed for every event, and twice if the object was replaced or belongs to
// another service now.
func onChange(changed func(object metav1.Object, gone bool)) informer.Handler {
	return func(before, after metav1.Object) {
		if after != nil {
			changed(after, false)
		}
		if after == nil || before != nil && (before.GetUID() != after.GetUID() || relabelled(before, after)) {
			changed(before, true)
		}
	}
}

// relabelled reports whether the labels of an object changed so that it may belong to another service.
func relabelled(before, after metav1.Object) bool {
	labels := []string{export.LabelService, export.LabelExposed, export.LabelKubernetesService}
	return slices.ContainsFunc(labels, func(label string) bool { return before.GetLabels()[label] != after.GetLabels()[label] })
}

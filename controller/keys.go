// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
	"github.com/clusterset-dns/clusterset-dns/controller/mcsapi"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// This file turns what changed into the names of the services that it concerns.
// It decides nothing: a name too many costs a look, a name too few would cost a
// change.

// derivedPrefix begins the names that export.DerivedServiceName gives.
const derivedPrefix = "derived-"

func (r *reconciler) enqueue(service types.NamespacedName) { r.queue.Add(service) }

// enqueueShown enqueues a service because of an object that this controller may
// have written.
func (r *reconciler) enqueueShown(service types.NamespacedName, change change) {
	if change.gone {
		r.enqueue(service)
		return
	}
	r.queue.AddShown(service, change.Object)
}

// objectHandler enqueues the service of a ServiceExport or ServiceImport. A
// ServiceImport that changes or goes may also free the name of its derived
// Service for another one.
func (r *reconciler) objectHandler() cache.ResourceEventHandler {
	return onChange(func(object change) {
		service := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
		r.enqueueShown(service, object)
		if _, imported := object.Object.(*v1beta1.ServiceImport); imported {
			r.enqueueDerivedAs(types.NamespacedName{Namespace: service.Namespace, Name: export.DerivedServiceName(service)}, service.Name)
		}
	})
}

// enqueueDerivedAs enqueues the other services whose derived Service has that name,
// or would have it.
func (r *reconciler) enqueueDerivedAs(derived types.NamespacedName, but string) {
	access, _ := r.api.Access()
	if access == nil {
		return // all services are enqueued once there is an access
	}
	for _, serviceImport := range access.ImportsDerivedAs(derived) {
		if serviceImport.Name == but {
			continue
		}
		r.enqueue(types.NamespacedName{Namespace: serviceImport.Namespace, Name: serviceImport.Name})
	}
}

// handle watches the caches of the own cluster. What it returns receives
// whenever the members' Secrets changed.
func (r *reconciler) handle() (credentialsChanged <-chan struct{}) {
	changed := make(chan struct{}, 1)
	r.local.services.Handle(onChange(r.serviceChanged))
	r.local.slices.Handle(onChange(r.sliceChanged))
	r.local.namespaces.Handle(r.namespaceHandler())
	r.local.nodes.Handle(r.nodeHandler())
	r.local.secrets.Handle(onChange(func(change) { trigger(changed) }))
	return changed
}

// serviceChanged enqueues the service that exports a Service, and those whose
// derived Service it is or whose derived Service needs its name.
func (r *reconciler) serviceChanged(object change) {
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	service := object.GetLabels()[export.LabelService]
	if !export.IsManaged(object) {
		service = ""
	}
	if strings.HasPrefix(key.Name, derivedPrefix) {
		r.enqueueDerivedAs(key, service)
	}
	if service != "" {
		r.enqueueShown(types.NamespacedName{Namespace: key.Namespace, Name: service}, object)
		return
	}
	access, _ := r.api.Access()
	if access == nil {
		return // all services are named once there is an access
	}
	if access.ServiceExport(key) != nil {
		r.enqueue(key)
	}
	r.adoptable(access, object.Object)
}

// adoptable names the services whose adopted imports have the IP of a Service
// that is not theirs: once it is gone they can have one with that IP. They are
// looked at with no regard to how often that failed before.
func (r *reconciler) adoptable(access *mcsapi.Access, object metav1.Object) {
	service, ok := object.(*corev1.Service)
	if !ok || len(service.Spec.ClusterIPs) == 0 {
		return
	}
	for _, serviceImport := range access.ImportsIn(service.Namespace) {
		if !merge.Adopted(serviceImport) || !slices.ContainsFunc(serviceImport.Spec.IPs, func(ip string) bool { return slices.Contains(service.Spec.ClusterIPs, ip) }) {
			continue
		}
		key := types.NamespacedName{Namespace: serviceImport.Namespace, Name: serviceImport.Name}
		r.queue.Forget(key)
		r.enqueue(key)
	}
}

// sliceChanged names the service that a slice was made for, or is exported
// from.
func (r *reconciler) sliceChanged(object change) {
	slice, ok := object.Object.(*discoveryv1.EndpointSlice)
	if !ok {
		return
	}
	if service := member.ServiceOf(slice); service.Name != "" {
		r.enqueueShown(service, object)
	}
	service := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[export.LabelKubernetesService]}
	if access, _ := r.api.Access(); service.Name != "" && access != nil && access.ServiceExport(service) != nil {
		r.enqueue(service)
	}
}

// namespaceHandler names all services of a namespace that comes or goes. Those
// of the namespaces that are there at the start are named by what is in them.
func (r *reconciler) namespaceHandler() cache.ResourceEventHandler {
	all := func(object change) {
		for service := range r.known() {
			if service.Namespace == object.GetName() {
				r.enqueue(service)
			}
		}
	}
	each := onChange(all)
	return cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isInInitialList bool) {
			if added, ok := object.(*corev1.Namespace); ok && added.Name == r.namespace {
				r.tellRank(added)
			}
			if !isInInitialList {
				each.AddFunc(object)
			}
		},
		UpdateFunc: func(before, after any) {
			old, ok := before.(*corev1.Namespace)
			current, alsoOK := after.(*corev1.Namespace)
			if ok && alsoOK && current.Name == r.namespace && (drained(old) != drained(current) || rankOf(old) != rankOf(current)) {
				r.enqueueCluster(r.cluster)
			}
			if ok && alsoOK && current.Name == r.namespace && old.Annotations[member.RankAnnotation] != current.Annotations[member.RankAnnotation] {
				r.tellRank(current)
			}
			if ok && alsoOK && (old.UID != current.UID || terminating(old) != terminating(current)) {
				all(change{Object: current})
			}
		},
		DeleteFunc: each.DeleteFunc,
	}
}

// memberChanged looks at everything of a cluster anew: it joined, was seen for
// the first time, has other annotations, or left.
func (r *reconciler) memberChanged(cluster string) {
	r.sentinel.remain(r.members.Members)
	var members []string
	for _, m := range r.members.Members() {
		members = append(members, m.Cluster())
	}
	r.shares.setMembers(members)
	r.enqueueCluster(cluster)
}

// enqueueCluster names all services that a cluster contributed to.
func (r *reconciler) enqueueCluster(cluster string) {
	for _, slice := range r.local.madeFrom(cluster) {
		r.enqueue(member.ServiceOf(slice))
	}
	if m := r.members.Get(cluster); m != nil {
		for _, service := range m.Services() {
			r.enqueue(service)
		}
	}
	for _, service := range r.remembered.services(cluster) {
		r.enqueue(service)
	}
}

// contributed returns the services that a member is believed to export, in a
// new map.
func (r *reconciler) contributed(cluster string) map[types.NamespacedName]struct{} {
	services := r.local.servicesFrom(cluster)
	for _, service := range r.remembered.services(cluster) {
		services[service] = struct{}{}
	}
	return services
}

// imported returns the services that are imported of a member, with what the
// copies of its slices weigh, in a new map.
func (r *reconciler) imported(cluster string) map[types.NamespacedName]export.Weight {
	services := map[types.NamespacedName]export.Weight{}
	for _, slice := range r.local.madeFrom(cluster) {
		service := member.ServiceOf(slice)
		services[service] = services[service].Plus(export.WeightOf(slice))
	}
	for _, service := range r.remembered.services(cluster) {
		services[service] = services[service].Plus(export.Weight{})
	}
	return services
}

// enqueueAll names all services that anybody knows of.
func (r *reconciler) enqueueAll() {
	for service := range r.known() {
		r.enqueue(service)
	}
}

// exported returns the services that the local cluster exports, or publishes
// slices for, in a new map.
func (r *reconciler) exported() map[types.NamespacedName]struct{} {
	services := r.local.servicesFrom(r.cluster)
	if access, _ := r.api.Access(); access != nil {
		for _, each := range access.Exports() {
			services[types.NamespacedName{Namespace: each.Namespace, Name: each.Name}] = struct{}{}
		}
	}
	return services
}

// known is every service that is exported, imported, or was.
func (r *reconciler) known() map[types.NamespacedName]struct{} {
	services := map[types.NamespacedName]struct{}{}
	if access, _ := r.api.Access(); access != nil {
		for _, each := range access.Exports() {
			services[types.NamespacedName{Namespace: each.Namespace, Name: each.Name}] = struct{}{}
		}
		for _, each := range access.Imports() {
			services[types.NamespacedName{Namespace: each.Namespace, Name: each.Name}] = struct{}{}
		}
	}
	for _, each := range []*informer.Informer{r.local.slices, r.local.services} {
		for _, value := range each.Indexer().ListIndexFuncValues(byMultiClusterService) {
			if namespace, name, err := cache.SplitMetaNamespaceKey(value); err == nil {
				services[types.NamespacedName{Namespace: namespace, Name: name}] = struct{}{}
			}
		}
	}
	for _, m := range r.members.Members() {
		for _, service := range m.Services() {
			services[service] = struct{}{}
		}
	}
	return services
}

// A change is an object that the caches show, or that is gone from them.
type change struct {
	metav1.Object
	gone bool
}

// onChange calls one function for whatever happens to an object.
func onChange(changed func(change)) cache.ResourceEventHandlerFuncs {
	call := func(object any, gone bool) {
		if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = tombstone.Obj
		}
		if accessed, ok := object.(metav1.Object); ok {
			changed(change{accessed, gone})
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { call(object, false) },
		UpdateFunc: func(before, after any) {
			call(after, false)
			if relabelled(before, after) {
				call(before, true)
			}
		},
		DeleteFunc: func(object any) { call(object, true) },
	}
}

// relabelled tells whether an object's labels changed, so that it may belong to
// another service now.
func relabelled(before, after any) bool {
	old, ok := before.(metav1.Object)
	current, alsoOK := after.(metav1.Object)
	if !ok || !alsoOK {
		return false
	}
	for _, label := range []string{export.LabelService, export.LabelKubernetesService} {
		if old.GetLabels()[label] != current.GetLabels()[label] {
			return true
		}
	}
	return false
}

// drained tells whether a person asked for the own cluster's endpoints to be
// demoted, on the namespace of the controller.
func drained(namespace *corev1.Namespace) bool {
	return namespace != nil && namespace.Annotations[AnnotationDrain] == "true"
}

// rankOf is the rank of the local cluster, by the namespace of the controller.
func rankOf(namespace *corev1.Namespace) int {
	if namespace == nil {
		return 0
	}
	rank, _ := member.ParseRank(namespace.Annotations)
	return rank
}

// tellRank records an Event if the rank of the local cluster is not valid.
func (r *reconciler) tellRank(namespace *corev1.Namespace) {
	if _, err := member.ParseRank(namespace.Annotations); err != nil {
		r.applier.Recorder.Event(namespace, corev1.EventTypeWarning, EventRankInvalid,
			err.Error()+". Correct it: until then, exports of this cluster come last in conflicts")
	}
}

func terminating(namespace *corev1.Namespace) bool {
	return namespace.DeletionTimestamp != nil || namespace.Status.Phase == corev1.NamespaceTerminating
}

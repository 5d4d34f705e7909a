// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// EventForeignObject is the reason of the Event on an object that has the name of one of this controller.
const EventForeignObject = "ForeignObject"

// EventClusterIPTaken is the reason of the Event on a ServiceImport that gave up an IP because another Service has it.
const EventClusterIPTaken = "ClusterIPTaken"

// reported remembers which foreign objects were reported for each service, by UID, so that each is reported once. It is safe
// for concurrent use.
type reported struct {
	mu       sync.Mutex
	services map[types.NamespacedName]map[types.UID]bool
}

// replace replaces the objects of a service, and returns those of before.
func (r *reported) replace(service types.NamespacedName, objects map[types.UID]bool) (before map[types.UID]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before = r.services[service]; r.services == nil {
		r.services = map[types.NamespacedName]map[types.UID]bool{}
	}
	if r.services[service] = objects; len(objects) == 0 {
		delete(r.services, service)
	}
	return before
}

// foreign records an object of another owner that has the name of a desired one.
func (p *pass) foreign(object reportable) { p.foreignObjects = append(p.foreignObjects, object) }

// reportForeign reports foreign objects with Events on the object itself and on the ServiceExport of this cluster.
func (p *pass) reportForeign() {
	if serviceImport := p.observed.ServiceImport; p.existing.Exported && serviceImport != nil &&
		!export.IsManaged(serviceImport) {
		p.foreign(serviceImport)
	}
	if service := p.observed.DerivedService; service != nil && !export.IsManaged(service) &&
		p.result.ServiceImport != nil && p.result.ServiceImport.Spec.Type == v1beta1.ClusterSetIP {
		p.foreign(service)
	}
	objects := map[types.UID]bool{}
	for _, object := range p.foreignObjects {
		objects[object.GetUID()] = true
	}
	before := p.reported.replace(p.observed.Service, objects)
	for _, object := range p.foreignObjects {
		if before[object.GetUID()] {
			continue
		}
		message := fmt.Sprintf("%s %s/%s was not made by this controller and is left alone; delete it, or %s, to let the service %s be imported here",
			kindOf(object), object.GetNamespace(), object.GetName(), handOver(object), p.observed.Service)
		p.Recorder.Event(object, corev1.EventTypeWarning, EventForeignObject, message)
		if p.observed.ServiceExport != nil {
			p.Recorder.Event(p.observed.ServiceExport, corev1.EventTypeWarning, EventForeignObject, message)
		}
	}
}

func kindOf(object metav1.Object) string {
	switch object.(type) {
	case *v1beta1.ServiceImport:
		return v1beta1.ServiceImportKindName
	case *v1beta1.ServiceExport:
		return v1beta1.ServiceExportKindName
	case *corev1.Service:
		return "Service"
	default:
		return "EndpointSlice"
	}
}

// handOver returns the instruction that hands the object over to this controller.
func handOver(object metav1.Object) string {
	switch object.(type) {
	case *v1beta1.ServiceImport:
		return "annotate it " + export.AnnotationAdopt + "=true"
	case *discoveryv1.EndpointSlice:
		return "label it " + export.LabelSliceManagedBy + "=" + export.Manager
	}
	return "label it " + export.LabelManagedBy + "=" + export.Manager
}

// reportConditions writes an Event for each condition that turned bad or recovered.
func (a *Applier) reportConditions(object runtime.Object, before, after []metav1.Condition) {
	for _, condition := range after {
		old := meta.FindStatusCondition(before, condition.Type)
		if old != nil && old.Status == condition.Status && old.Reason == condition.Reason {
			continue
		}
		if condition.Type == string(v1beta1.ServiceExportConditionConflict) &&
			!meta.IsStatusConditionTrue(after, string(v1beta1.ServiceExportConditionValid)) {
			continue // Valid reports why the service is not exported
		}
		good := metav1.ConditionTrue
		if condition.Type == string(v1beta1.ServiceExportConditionConflict) {
			good = metav1.ConditionFalse
		}
		switch {
		case condition.Status != good && condition.Reason != string(v1beta1.ServiceExportReasonPending):
			a.Recorder.Event(object, corev1.EventTypeWarning, condition.Reason, condition.Message)
		case condition.Status == good && old != nil && old.Status != good &&
			old.Reason != string(v1beta1.ServiceExportReasonPending):
			a.Recorder.Event(object, corev1.EventTypeNormal, condition.Reason, condition.Message)
		}
	}
}

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

// EventForeignObject is the reason of the Event on an object that stands where
// the controller would put its own.
const EventForeignObject = "ForeignObject"

// told remembers which foreign objects were reported, so that each is reported
// once.
type told struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]map[types.UID]bool
}

// news returns those of the objects that were not told for the service, and
// remembers all of them instead of what was told before.
func (t *told) news(service types.NamespacedName, objects []metav1.Object) []metav1.Object {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.objects[service]
	if len(objects) == 0 {
		delete(t.objects, service)
		return nil
	}
	if t.objects == nil {
		t.objects = map[types.NamespacedName]map[types.UID]bool{}
	}
	now := map[types.UID]bool{}
	var news []metav1.Object
	for _, object := range objects {
		if !before[object.GetUID()] {
			news = append(news, object)
		}
		now[object.GetUID()] = true
	}
	t.objects[service] = now
	return news
}

// foreign notes an object that is not ours and that has the name of one that
// would be.
func (p *pass) foreign(object metav1.Object) { p.strangers = append(p.strangers, object) }

// tellForeign reports foreign objects: on the object itself, and on the
// ServiceExport of this cluster, which is where a person would look.
func (p *pass) tellForeign() {
	if serviceImport := p.observed.ServiceImport; p.existing.Exported && serviceImport != nil &&
		!export.IsManaged(serviceImport) {
		p.foreign(serviceImport)
	}
	if service := p.observed.DerivedService; service != nil && !export.IsManaged(service) &&
		p.result.ServiceImport != nil && p.result.ServiceImport.Spec.Type == v1beta1.ClusterSetIP {
		p.foreign(service)
	}
	for _, object := range p.told.news(p.observed.Service, p.strangers) {
		message := fmt.Sprintf("%s %s/%s was not made by this controller and is left alone; delete it, or %s, to let the service %s be imported here",
			kindOf(object), object.GetNamespace(), object.GetName(), handOver(object), p.observed.Service)
		if regarding, ok := object.(runtime.Object); ok {
			p.Recorder.Event(regarding, corev1.EventTypeWarning, EventForeignObject, message)
		}
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

// handOver is what makes the object this controller's.
func handOver(object metav1.Object) string {
	switch object.(type) {
	case *v1beta1.ServiceImport:
		return "annotate it " + export.AnnotationAdopt + "=true"
	case *discoveryv1.EndpointSlice:
		return "label it " + export.LabelSliceManagedBy + "=" + export.Manager
	default:
		return "label it " + export.LabelManagedBy + "=" + export.Manager
	}
}

// tellConditions writes an Event for each condition whose status or reason
// changed to something that a person should look at, or back.
func (a *Applier) tellConditions(object runtime.Object, before, after []metav1.Condition) {
	for _, condition := range after {
		old := meta.FindStatusCondition(before, condition.Type)
		if old != nil && old.Status == condition.Status && old.Reason == condition.Reason {
			continue
		}
		if condition.Type == string(v1beta1.ServiceExportConditionConflict) &&
			!meta.IsStatusConditionTrue(after, string(v1beta1.ServiceExportConditionValid)) {
			continue // nothing that is not exported conflicts: Valid tells
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

// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// EventForeignObject on the foreign object or the ServiceExport: the controller needs its name. Adopt or delete it.
const EventForeignObject = "ForeignObject"

// foreign reports an import or slice of another owner that has the name of a desired one, with Events on the object itself and on
// the ServiceExport of this cluster, and returns the message. The recorder aggregates repeated Events and limits their rate.
func (p *pass) foreign(object reportable) error {
	kind, handOver := "EndpointSlice", fmt.Sprintf("label it %s=%s and %s=%s", export.LabelSliceManagedBy, export.Manager,
		export.LabelService, p.observed.Service.Name)
	if _, imported := object.(*v1beta1.ServiceImport); imported {
		kind, handOver = v1beta1.ServiceImportKindName, "annotate it "+export.AnnotationAdopt+"=true"
	}
	message := fmt.Sprintf("%s %s/%s has a name that the service %s needs, and belongs to another owner or service. Delete it, or %s",
		kind, object.GetNamespace(), object.GetName(), p.observed.Service, handOver)
	p.Recorder.Event(object, corev1.EventTypeWarning, EventForeignObject, message)
	if p.observed.ServiceExport != nil {
		p.Recorder.Event(p.observed.ServiceExport, corev1.EventTypeWarning, EventForeignObject, message)
	}
	return errors.New(message)
}

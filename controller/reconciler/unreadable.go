// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/mcsapi"
)

// EventUnreadable is the reason of the Event on a ServiceExport or
// ServiceImport that cannot be decoded.
const EventUnreadable = "Unreadable"

// unreadable reports whether the ServiceExport or the ServiceImport of a service
// cannot be decoded, and records an Event on the object. All objects of the service
// then stay as they are: such a ServiceExport withdraws nothing, and such a
// ServiceImport is not created again.
func (r *Reconciler) unreadable(access *mcsapi.Access, service types.NamespacedName) bool {
	why := ""
	report := func(object runtime.Object, kind, reason string) {
		if reason != "" {
			why = reason
			r.Recorder.Event(object, corev1.EventTypeWarning, EventUnreadable,
				kind+" "+service.String()+" cannot be decoded, so that its service stays as it is. Correct or delete it: "+reason)
		}
	}
	if object := access.ServiceExport(service); object != nil {
		report(object, v1beta1.ServiceExportKindName, mcsapi.Unreadable(object))
	}
	if object := access.ServiceImport(service); object != nil {
		report(object, v1beta1.ServiceImportKindName, mcsapi.Unreadable(object))
	}
	return why != ""
}

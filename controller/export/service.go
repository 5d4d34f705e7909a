// SPDX-License-Identifier: Apache-2.0

package export

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// FromService is the view of one of the cluster's own exports. service is nil
// where none exists. slices are those that Kubernetes has for the Service (by
// label kubernetes.io/service-name); what this controller or another
// implementation of the MCS API wrote among them is passed over.
//
// Where the export is not valid the view is nil and Invalid says why. The
// problems say what else was left out of a valid one. The view shares
// immutable parts with its inputs, which stay unchanged.
func FromService(cluster string, serviceExport *v1beta1.ServiceExport, service *corev1.Service, slices []*discoveryv1.EndpointSlice) (*View, []Problem, *Invalid) {
	return nil, nil, nil
}

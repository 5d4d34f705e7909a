// SPDX-License-Identifier: Apache-2.0

package export

import (
	"strconv"

	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// saturated reports whether the annotations of a ServiceExport say that the local cluster is overloaded for a service
// with these slices. Without endpoints it is not.
func saturated(serviceExport *v1beta1.ServiceExport, slices []Slice, found *problems) bool {
	if serviceExport.Annotations[AnnotationSaturated] == "true" {
		return true
	}
	text := serviceExport.Annotations[AnnotationSaturatedBelow]
	if text == "" {
		return false
	}
	below, err := strconv.Atoi(text)
	if err != nil || below < 1 || below > 100 {
		found.add(ReasonBadMetadata, "ServiceExport "+serviceExport.Namespace+"/"+serviceExport.Name,
			"annotation %s is %.20q and has no effect: use 1 to 100", AnnotationSaturatedBelow, text)
		return false
	}
	ready, all := 0, 0
	for i := range slices {
		all += len(slices[i].Endpoints)
		for _, endpoint := range slices[i].Endpoints {
			if isTrue(endpoint.Conditions.Ready, true) {
				ready++
			}
		}
	}
	return 100*ready < below*all
}

// SPDX-License-Identifier: Apache-2.0

package export

import (
	"slices"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// saturatedBand is how many points above AnnotationSaturatedBelow the share of ready endpoints must be before a saturated
// cluster is no longer saturated. Half of what is left to 100 suffices.
const saturatedBand = 10

// saturated reports whether the annotations of a ServiceExport say that the local cluster is overloaded for a service
// with these slices. Without endpoints it is not. was reports whether it is now, which matters within saturatedBand.
func saturated(serviceExport *v1beta1.ServiceExport, exported []Slice, was func() bool, found *problems) bool {
	object := "ServiceExport " + serviceExport.Namespace + "/" + serviceExport.Name
	switch text := serviceExport.Annotations[AnnotationSaturated]; text {
	case "true":
		return true
	case "false", "":
	default:
		found.addFor(AnnotationSaturated, ReasonBadMetadata, object,
			"annotation %s is %.20q and has no effect: use true or false", AnnotationSaturated, text)
	}
	text := serviceExport.Annotations[AnnotationSaturatedBelow]
	if text == "" {
		return false
	}
	below, err := strconv.Atoi(text)
	if err != nil || below < 1 || below > 100 {
		found.addFor(AnnotationSaturatedBelow, ReasonBadMetadata, object,
			"annotation %s is %.20q and has no effect: use 1 to 100", AnnotationSaturatedBelow, text)
		return false
	}
	ready, all := 0, 0
	for i := range exported {
		all += len(exported[i].Endpoints)
		for _, endpoint := range exported[i].Endpoints {
			if isTrue(endpoint.Conditions.Ready, true) {
				ready++
			}
		}
	}
	until := below + min(saturatedBand, (100-below)/2)
	return 100*ready < below*all || 100*ready < until*all && was()
}

// saidSaturated reports whether a slice that the local cluster publishes says that it is saturated. The published slices
// are the memory of a controller that starts.
func saidSaturated(cluster string, published []*discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(published, func(slice *discoveryv1.EndpointSlice) bool {
		if !IsManaged(slice) || slice.Labels[LabelSourceCluster] != cluster {
			return false
		}
		decoded, _, err := readSnapshot(slice.Annotations)
		if err != nil || decoded.Absent {
			return false
		}
		spec, err := decoded.spec()
		return err == nil && spec.Saturated
	})
}

// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
)

// Strip drops what the controller does not read of a just decoded slice of another cluster, so that no slice takes much
// more memory once it is opened than it counts. The ports of endpoints are in the snapshot. It keeps the first address
// of an endpoint: Kubernetes writes only one, and kube-proxy uses no other.
func Strip(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	slice.ManagedFields = nil
	slice.OwnerReferences = nil
	slice.Finalizers = nil
	slice.GenerateName = ""
	slice.Ports = nil
	maps.DeleteFunc(slice.Labels, func(key, _ string) bool {
		return key != LabelService && key != LabelSourceCluster && key != LabelSliceManagedBy && key != LabelExposed
	})
	maps.DeleteFunc(slice.Annotations, func(key, _ string) bool {
		return !strings.HasPrefix(key, AnnotationSnapshotPrefix) && key != AnnotationTriggerTime
	})
	for i := range slice.Endpoints {
		endpoint := &slice.Endpoints[i]
		endpoint.NodeName = nil
		endpoint.TargetRef = nil
		endpoint.Hints = nil
		endpoint.DeprecatedTopology = nil
		if len(endpoint.Addresses) > 1 {
			endpoint.Addresses = []string{endpoint.Addresses[0]}
		}
	}
	return slice
}

// SPDX-License-Identifier: Apache-2.0

package export

import (
	"maps"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Strip returns the parts of another cluster's slice that the controller reads, so that an opened slice takes hardly more memory
// than its weight in limits. The snapshot has the ports. Each endpoint keeps its first address: Kubernetes writes only one, and
// kube-proxy uses no other. The result shares parts with the slice, whose labels and annotations Strip changes.
func Strip(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	maps.DeleteFunc(slice.Labels, func(key, _ string) bool {
		return key != LabelService && key != LabelSourceCluster && key != LabelSliceManagedBy && key != LabelExposed
	})
	maps.DeleteFunc(slice.Annotations, func(key, _ string) bool {
		return !strings.HasPrefix(key, AnnotationSnapshotPrefix) && key != AnnotationTriggerTime
	})
	kept := &discoveryv1.EndpointSlice{AddressType: slice.AddressType, ObjectMeta: metav1.ObjectMeta{
		Namespace: slice.Namespace, Name: slice.Name, ResourceVersion: slice.ResourceVersion,
		DeletionTimestamp: slice.DeletionTimestamp, Labels: slice.Labels, Annotations: slice.Annotations,
	}}
	for _, each := range slice.Endpoints {
		kept.Endpoints = append(kept.Endpoints, discoveryv1.Endpoint{
			Addresses: each.Addresses[:min(1, len(each.Addresses))], Conditions: each.Conditions, Hostname: each.Hostname, Zone: each.Zone,
		})
	}
	return kept
}

// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// The functions below compare the fields that the controller decides. They treat nil and empty alike, as the API server
// does.

func equalMetadata(a, b metav1.Object) bool {
	return maps.Equal(a.GetLabels(), b.GetLabels()) && maps.Equal(a.GetAnnotations(), b.GetAnnotations()) &&
		equality.Semantic.DeepEqual(a.GetOwnerReferences(), b.GetOwnerReferences())
}

func equalImport(a, b *v1beta1.ServiceImport) bool {
	return equalMetadata(a, b) && equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func equalImportStatus(a, b *v1beta1.ServiceImport) bool {
	return equality.Semantic.DeepEqual(a.Status, b.Status)
}

func equalExportStatus(a, b *v1beta1.ServiceExport) bool {
	return equality.Semantic.DeepEqual(a.Status, b.Status)
}

func equalService(a, b *corev1.Service) bool {
	return equalMetadata(a, b) && equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func equalSlice(a, b *discoveryv1.EndpointSlice) bool {
	return equalMetadata(a, b) && a.AddressType == b.AddressType &&
		equality.Semantic.DeepEqual(a.Ports, b.Ports) && slices.EqualFunc(a.Endpoints, b.Endpoints, equalEndpoint)
}

// equalEndpoint compares endpoints as equality.Semantic does, without reflection.
func equalEndpoint(a, b discoveryv1.Endpoint) bool {
	return slices.Equal(a.Addresses, b.Addresses) &&
		ptr.Equal(a.Conditions.Ready, b.Conditions.Ready) && ptr.Equal(a.Conditions.Serving, b.Conditions.Serving) &&
		ptr.Equal(a.Conditions.Terminating, b.Conditions.Terminating) &&
		ptr.Equal(a.Hostname, b.Hostname) && ptr.Equal(a.NodeName, b.NodeName) && ptr.Equal(a.Zone, b.Zone) &&
		maps.Equal(a.DeprecatedTopology, b.DeprecatedTopology) &&
		(a.TargetRef == b.TargetRef || equality.Semantic.DeepEqual(a.TargetRef, b.TargetRef)) &&
		equalHints(a.Hints, b.Hints)
}

func equalHints(a, b *discoveryv1.EndpointHints) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.ForZones, b.ForZones) && slices.Equal(a.ForNodes, b.ForNodes)
}

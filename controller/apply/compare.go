// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	return equalMetadata(a, b) && bytes.Equal(content(a), content(b))
}

// content encodes a slice without its metadata. To compare by reflection takes ten times as long.
func content(slice *discoveryv1.EndpointSlice) []byte {
	bare := discoveryv1.EndpointSlice{AddressType: slice.AddressType, Endpoints: slice.Endpoints, Ports: slice.Ports}
	encoded, err := bare.Marshal()
	if err != nil {
		panic(fmt.Sprintf("apply: EndpointSlice %s/%s cannot be encoded: %v", slice.Namespace, slice.Name, err))
	}
	return encoded
}

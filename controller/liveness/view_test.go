// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestRefusedSliceStays: a slice that cannot be understood stays as the copy
// has it, also where what is wrong is its address type.
func TestRefusedSliceStays(t *testing.T) {
	web := types.NamespacedName{Namespace: "demo", Name: "web"}
	for _, addressType := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		view := &export.View{
			Cluster: "west", Service: web,
			Spec: &export.Spec{
				Created: time.Unix(1.7e9, 0), Type: v1beta1.ClusterSetIP,
				IPFamilies: []corev1.IPFamily{corev1.IPFamily(addressType)},
			},
			Slices: []export.Slice{{Name: "web-1", AddressType: addressType}},
		}
		published := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "demo", Name: "web-1", Annotations: export.NewEncoder(view).Annotations(&view.Slices[0],
					nil),
				Labels: map[string]string{
					export.LabelService: "web", export.LabelSourceCluster: "west",
					export.LabelSliceManagedBy: export.Manager,
				},
			},
			AddressType: addressType,
		}
		known := published.DeepCopy()
		known.Name, known.UID = export.SliceName("west", web, published.Name, addressType), "1"
		for name, refuse := range map[string]func(*discoveryv1.EndpointSlice){
			"address type": func(slice *discoveryv1.EndpointSlice) { slice.AddressType = discoveryv1.AddressTypeFQDN },
			"label": func(slice *discoveryv1.EndpointSlice) {
				slice.Labels[export.LabelSourceCluster] = "north"
			},
			"snapshot": func(slice *discoveryv1.EndpointSlice) { slice.Annotations = nil },
		} {
			wrong := published.DeepCopy()
			refuse(wrong)
			got, problems, used := Verdict{}.View(Evidence{
				Source: export.Source{Cluster: "west"}, Service: web, Complete: true,
				Published: []*discoveryv1.EndpointSlice{wrong}, Copies: []*discoveryv1.EndpointSlice{known},
			})
			if got == nil || len(got.Slices) != 1 || len(problems) != 1 || len(used) != 1 {
				t.Errorf("%s of an %s slice: the view is %+v, the problems %v", name, addressType, got, problems)
			}
		}
	}
}

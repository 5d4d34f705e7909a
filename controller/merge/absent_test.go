// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestKeepsImport: an export without a Service creates no import, but keeps an existing one. It is published for clusters
// that have an import.
func TestKeepsImport(t *testing.T) {
	absent := newAbsent("east")
	published := []*discoveryv1.EndpointSlice{{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: absent.Slices[0].Name,
			Labels: map[string]string{
				export.LabelService: "web", export.LabelSourceCluster: "east", export.LabelSliceManagedBy: export.Manager,
				export.LabelKubernetesService: "WEB",
			},
			Annotations: absent.Annotations(&absent.Slices[0], nil),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "multicluster.x-k8s.io/v1beta1", Kind: "ServiceExport", Name: "web", UID: "uid-of-export", Controller: ptr.To(true),
			}},
		},
		AddressType: "IPv4", Ports: []discoveryv1.EndpointPort{},
	}}
	alone := Merge(newObserved("east"), contribute(newAbsent("west"), absent))
	diff(t, "import of nothing", alone.ServiceImport, (*v1beta1.ServiceImport)(nil))
	diff(t, "slices without an import", alone.EndpointSlices, published)

	foreign := newObserved("east")
	foreign.ServiceImport = &v1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web"}}
	beside := Merge(foreign, contribute(newAbsent("west"), absent))
	diff(t, "import of somebody else", beside.ServiceImport, (*v1beta1.ServiceImport)(nil))
	diff(t, "slices beside it", beside.EndpointSlices, published)

	observed, _ := settled(t, newObserved("east"), contribute(newView("east", 1, "http:80/TCP", "10.1.0.1")))
	observed, result := settled(t, observed, contribute(newAbsent("east")))
	diff(t, "slices", result.EndpointSlices, published)
	diff(t, "endpointSliceObjects", string(result.ServiceImport.Status.EndpointSliceObjects), "Absent")
	diff(t, "ready", conditionOf(result.ServiceImport.Status.Conditions, "Ready"), metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Pending",
		Message: "No cluster exports the service. The import stays for the ServiceExport of \"east\", whose Service does not exist.",
	})

	// The derived Service is created again.
	observed.DerivedService = nil
	derived := Merge(observed, contribute(newAbsent("east"))).DerivedService
	diff(t, "IPs of the derived Service", derived.Spec.ClusterIPs, []string{"10.96.0.7"})
	diff(t, "its families", derived.Spec.IPFamilies, []corev1.IPFamily{"IPv4"})

	_, result = settled(t, observed, contribute(newView("west", 1, "http:80/TCP", "10.2.0.1"), newAbsent("east")))
	diff(t, "IPs when another cluster exports it", result.ServiceImport.Spec.IPs, []string{"10.96.0.7"})
	diff(t, "clusters", len(result.ServiceImport.Status.Clusters), 1)
	var owners []string
	for _, slice := range result.EndpointSlices {
		owners = append(owners, slice.Labels[export.LabelSourceCluster]+" "+slice.OwnerReferences[0].Kind)
	}
	diff(t, "owners of the slices of both", owners, []string{"west ServiceImport", "east ServiceExport"})
}

// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/export/exporttest"
)

func TestEndpointSlices(t *testing.T) {
	east := newView("east", 1, "http:80/TCP", "10.1.0.1", func(v *export.View) {
		v.Slices[0].Endpoints[0].NodeName = ptr.To("node-1")
		v.Slices[0].TriggerTime = "2026-03-01T12:00:00Z"
	})
	west := newView("west", 2, "web:80/TCP", "10.2.0.1 !10.2.0.2")
	observed := newObserved("east")
	observed.APIVersion = "multicluster.x-k8s.io/v1alpha1"
	result := Merge(observed, contribute(west, east))

	labels := func(cluster string) map[string]string {
		return map[string]string{
			export.LabelService: "web", export.LabelSourceCluster: cluster, export.LabelSliceManagedBy: export.Manager,
			export.LabelKubernetesService: derivedName,
		}
	}
	ports := []discoveryv1.EndpointPort{{
		Name: ptr.To("http"), Protocol: ptr.To(exporttest.Ports("80/TCP")[0].Protocol),
		Port: ptr.To[int32](8080),
	}}
	copyName := export.SliceName("west", web, "web-west", discoveryv1.AddressTypeIPv4)
	diff(t, "slices", result.EndpointSlices, []*discoveryv1.EndpointSlice{
		{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "demo", Name: "web-east", Labels: labels("east"),
				Annotations: export.NewEncoder(east).Annotations(&east.Slices[0], nil),
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ServiceExport", Name: "web",
					UID: "uid-of-export", Controller: ptr.To(true),
				}},
			},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: east.Slices[0].Endpoints, Ports: ports,
		},
		{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "demo", Name: copyName, Labels: labels("west"),
				Annotations: export.NewEncoder(west).Annotations(&west.Slices[0], nil),
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: "ServiceImport", Name: "web",
					Controller: ptr.To(true),
				}},
			},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: west.Slices[0].Endpoints, Ports: ports,
		},
	})
}

// TestNoService: the value is a valid one, and the name of no Service.
func TestNoService(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, row := range []struct{ service, cluster, want string }{
		{"db", "east", "DB"},
		{"db", "west", "WEST.DB"},
		{"db", "west.example", "WEST.EXAMPLE.DB"},
		{"3306", "east", "EAST.3306"}, // as RelaxedServiceNameValidation permits
		{long, "east", strings.ToUpper(long)},
		{long, "west", "WEST." + strings.ToUpper(long)[:58]},
		{"db", long[:62], strings.ToUpper(long)[:62]},
	} {
		observed := newObserved("east")
		observed.Service.Name = row.service
		got := noService(observed, row.cluster)
		if problems := validation.IsValidLabelValue(got); got != row.want || len(problems) > 0 {
			t.Errorf("service %s, cluster %s: %q, want %q: %v", row.service, row.cluster, got, row.want, problems)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
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

	owner := func(kind string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{
			APIVersion: "multicluster.x-k8s.io/v1alpha1", Kind: kind, Name: "web", UID: uid, Controller: ptr.To(true),
		}
	}
	port := discoveryv1.EndpointPort{Name: ptr.To("http"), Protocol: ptr.To(corev1.ProtocolTCP), Port: ptr.To[int32](8080)}
	diff(t, "slices", result.EndpointSlices, []*discoveryv1.EndpointSlice{
		sliceOf(east, "web-east", derivedName, owner("ServiceExport", "uid-of-export"), port),
		sliceOf(west, export.SliceName("west", web, "web-west", discoveryv1.AddressTypeIPv4), derivedName, owner("ServiceImport", ""), port),
	})
}

// sliceOf is the object of the only slice of a view, with its name, Service, owner and ports in a cluster.
func sliceOf(view *export.View, name, service string, owner metav1.OwnerReference, ports ...discoveryv1.EndpointPort,
) *discoveryv1.EndpointSlice {
	slice := &view.Slices[0]
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: name,
			Labels: map[string]string{
				export.LabelService: "web", export.LabelSourceCluster: view.Cluster, export.LabelSliceManagedBy: export.Manager,
				export.LabelKubernetesService: service,
			},
			Annotations:     view.Annotations(slice, nil),
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		AddressType: slice.AddressType, Endpoints: slice.Endpoints, Ports: append([]discoveryv1.EndpointPort{}, ports...),
	}
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

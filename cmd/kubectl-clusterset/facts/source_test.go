// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestSourcesWithoutService: a cluster whose ServiceExport has no Service says
// so, and is none that exports, here as well as from afar.
func TestSourcesWithoutService(t *testing.T) {
	web := types.NamespacedName{Namespace: "demo", Name: "web"}
	serviceExport := v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web"}}
	view, _, _ := export.FromService("west", &serviceExport, nil, nil)
	published := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	published.Namespace, published.Name = "demo", view.Slices[0].Name
	published.Labels = map[string]string{
		export.LabelService: "web", export.LabelSourceCluster: "west",
		export.LabelSliceManagedBy: export.Manager,
	}
	published.Annotations = export.NewEncoder(view).Annotations(&view.Slices[0], nil)

	f := &Facts{
		ID: "east", System: "clusterset-dns", Exports: []v1beta1.ServiceExport{serviceExport},
		Members: []Member{{ID: "west", Rank: 4, Published: []*discoveryv1.EndpointSlice{published}}},
		Namespaces: map[string]*corev1.Namespace{"clusterset-dns": {ObjectMeta: metav1.ObjectMeta{
			Name: "clusterset-dns", Annotations: map[string]string{member.RankAnnotation: "-2"},
		}}},
	}
	sources := f.Sources(web)
	if len(sources) != 2 {
		t.Fatalf("%d sources", len(sources))
	}
	for i, want := range []Source{{Cluster: "east", Rank: -2}, {Cluster: "west", Rank: 4}} {
		got := sources[i]
		if got.Cluster != want.Cluster || got.Rank != want.Rank || got.View != nil || got.Published != nil ||
			got.Invalid == nil || got.Invalid.Reason != "NoService" {
			t.Errorf("got %+v", got)
		}
	}
	if contributions := Contributions(sources); len(contributions) > 0 {
		t.Errorf("contributions %v", contributions)
	}
}

// TestSaturatedSource: whether the local cluster is saturated depends on what it published.
func TestSaturatedSource(t *testing.T) {
	web := types.NamespacedName{Namespace: "demo", Name: "web"}
	serviceExport := v1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
		Namespace: "demo", Name: "web", CreationTimestamp: metav1.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		Annotations: map[string]string{export.AnnotationSaturatedBelow: "45"},
	}}
	service := corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web"}}
	service.Spec.ClusterIP, service.Spec.Ports = "10.96.0.1", []corev1.ServicePort{{Port: 80}}
	half := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: "web-1", Labels: map[string]string{export.LabelKubernetesService: "web"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.1.0.1"}, Conditions: export.Conditions(true, true, false)},
			{Addresses: []string{"10.1.0.2"}, Conditions: export.Conditions(false, false, false)},
		},
	}
	f := &Facts{
		ID: "east", Exports: []v1beta1.ServiceExport{serviceExport}, Services: []corev1.Service{service},
		Slices: []*discoveryv1.EndpointSlice{half},
	}
	view := f.Sources(web)[0].View
	if view == nil || view.Spec.Saturated {
		t.Fatalf("before: %+v", view)
	}
	view.Spec.Saturated = true
	published := half.DeepCopy()
	published.Labels = map[string]string{
		export.LabelService: "web", export.LabelSourceCluster: "east", export.LabelSliceManagedBy: export.Manager,
	}
	published.Annotations = export.NewEncoder(view).Annotations(&view.Slices[0], nil)
	f.Slices = append(f.Slices, published)
	if view := f.Sources(web)[0].View; !view.Spec.Saturated || len(view.Slices) != 1 {
		t.Errorf("after: %+v", view)
	}
}

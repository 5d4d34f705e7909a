// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// handMade is an import and a slice as in the demo of the MCS API.
func handMade() Observed {
	observed := newObserved("east")
	observed.ServiceExport = nil
	observed.ServiceImport = &v1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: "web", UID: "uid-of-import",
			Labels: map[string]string{"team": "red"}, Annotations: map[string]string{export.AnnotationServe: "true"},
		},
		Spec: v1beta1.ServiceImportSpec{Type: v1beta1.ClusterSetIP, Ports: []v1beta1.ServicePort{{Port: 80}}},
	}
	observed.HandMadeSlices = []*discoveryv1.EndpointSlice{{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: "by-hand",
			Labels: map[string]string{export.LabelService: "web"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}}
	return observed
}

func TestHandMade(t *testing.T) {
	observed := handMade()
	before := textOf(t, objectsOf(observed))
	want := observed.ServiceImport.DeepCopy()
	want.Annotations[export.AnnotationDerivedService] = derivedName
	want.Spec.IPs = []string{"10.96.0.7"}
	want.Status = v1beta1.ServiceImportStatus{
		EndpointSliceObjects: v1beta1.EndpointSliceObjectsPresent,
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready",
			Message: "The service is imported.",
		}},
	}
	first := Merge(observed, nil)
	diff(t, "observed", textOf(t, objectsOf(observed)), before)
	wantSlice := observed.HandMadeSlices[0].DeepCopy()
	wantSlice.Labels[export.LabelKubernetesService] = derivedName
	diff(t, "slices", first.HandMadeSlices, []*discoveryv1.EndpointSlice{wantSlice})

	observed.HandMadeSlices = first.HandMadeSlices
	_, last := settled(t, observed, nil)
	diff(t, "import at rest", last.ServiceImport, want)
	diff(t, "slices at rest", len(last.HandMadeSlices), 0)
	diff(t, "derived Service", last.DerivedService, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: derivedName, OwnerReferences: importOwnerReference("uid-of-import"),
			Labels: map[string]string{export.LabelManagedBy: export.Manager, export.LabelService: "web"},
		},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{
				Protocol: corev1.ProtocolTCP, Port: 80,
				TargetPort: intstr.FromInt32(80),
			}},
			ClusterIP:  "10.96.0.7",
			ClusterIPs: []string{"10.96.0.7"},
			IPFamilies: []corev1.IPFamily{"IPv4"}, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicySingleStack),
			SessionAffinity:       corev1.ServiceAffinityNone,
			InternalTrafficPolicy: ptr.To(corev1.ServiceInternalTrafficPolicyCluster),
		},
	})

	t.Run("the derived Service comes back with its IP", func(t *testing.T) {
		observed := handMade()
		observed.ServiceImport = last.ServiceImport
		diff(t, "IPs", Merge(observed, nil).DerivedService.Spec.ClusterIPs, []string{"10.96.0.7"})
	})
}

// TestHandMadeKeepsItsIP: the derived Service requests the IP that the author of the import wrote, unless it is that of
// another import.
func TestHandMadeKeepsItsIP(t *testing.T) {
	observed := handMade()
	observed.ServiceImport.Spec.IPs = []string{"10.96.0.42"}
	_, last := settled(t, observed, nil)
	diff(t, "IPs of the import", last.ServiceImport.Spec.IPs, []string{"10.96.0.42"})
	diff(t, "IPs of the derived Service", last.DerivedService.Spec.ClusterIPs, []string{"10.96.0.42"})

	observed.TakenIPs = []string{"10.96.0.42"}
	_, last = settled(t, observed, nil)
	diff(t, "IPs if another import has it", last.ServiceImport.Spec.IPs, []string{"10.96.0.7"})
}

// TestHandMadeNoLonger: what serving brought is taken back, and then the import is as its author left it.
func TestHandMadeNoLonger(t *testing.T) {
	begin := handMade()
	begin.HandMadeSlices = Merge(begin, nil).HandMadeSlices
	served, _ := settled(t, begin, nil)
	for name, views := range map[string][]*export.View{
		"not asked for": nil,
		"exported":      {newView("west", 1, "80/TCP", "")},
	} {
		t.Run(name, func(t *testing.T) {
			observed := served
			observed.ServiceImport = notAsking(observed.ServiceImport)
			result := Merge(observed, contribute(views...))
			diff(t, "IPs", len(result.ServiceImport.Spec.IPs), 0)
			diff(t, "Ready", conditionOf(t, result.ServiceImport.Status.Conditions, "Ready"), metav1.Condition{
				Type: "Ready", Status: metav1.ConditionFalse, Reason: "NotServed",
				Message: `The import is not served: its annotation clusterset-dns.github.io/serve is not "true".`,
			})
			diff(t, "label", result.HandMadeSlices[0].Labels, map[string]string{export.LabelService: "web"})
			if result.DerivedService == nil {
				t.Error("the derived Service goes before what tells of it")
			}
			observed.HandMadeSlices = result.HandMadeSlices
			observed.ServiceImport = result.ServiceImport
			result = Merge(observed, contribute(views...))
			diff(t, "annotations", len(result.ServiceImport.Annotations), 0)
			observed.ServiceImport = result.ServiceImport
			result = Merge(observed, contribute(views...))
			if result.ServiceImport != nil || result.DerivedService != nil || len(result.HandMadeSlices) > 0 {
				t.Errorf("something is left to write: %v", result)
			}
		})
	}
	t.Run("served by another implementation", func(t *testing.T) {
		observed := served
		observed.ServiceImport, observed.DerivedService = notAsking(observed.ServiceImport), nil
		if result := Merge(observed, nil); result.ServiceImport != nil {
			t.Errorf("it is changed: %v", result.ServiceImport)
		}
		observed.DerivedService = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: derivedName}}
		if result := Merge(observed, nil); result.ServiceImport != nil {
			t.Errorf("it is changed: %v", result.ServiceImport)
		}
	})
}

// notAsking returns an import without the annotation that asks for it to be served.
func notAsking(imported *v1beta1.ServiceImport) *v1beta1.ServiceImport {
	imported = imported.DeepCopy()
	delete(imported.Annotations, export.AnnotationServe)
	return imported
}

// TestHandMadeNotServed: where nobody asks, and where it is not what the MCS
// API's demo has, a hand-made import is left alone.
func TestHandMadeNotServed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Observed)
		views  []*export.View
		served bool
	}{
		"asked for":     {change: func(*Observed) {}, served: true},
		"not asked for": {change: func(o *Observed) { o.ServiceImport.Annotations = nil }},
		"declined": {change: func(o *Observed) {
			o.ServiceImport.Annotations = map[string]string{export.AnnotationServe: "false"}
		}},
		"headless":      {change: func(o *Observed) { o.ServiceImport.Spec.Type = v1beta1.Headless }},
		"being deleted": {change: func(o *Observed) { o.ServiceImport.DeletionTimestamp = &metav1.Time{Time: day(9)} }},
		"exported":      {change: func(*Observed) {}, views: []*export.View{newView("west", 1, "80/TCP", "")}},
	} {
		t.Run(name, func(t *testing.T) {
			observed := handMade()
			test.change(&observed)
			result := Merge(observed, contribute(test.views...))
			if served := result.ServiceImport != nil && result.DerivedService != nil &&
				len(result.HandMadeSlices) == 1; served != test.served {
				t.Errorf("served = %v: %v", served, result)
			}
			if !test.served && (result.ServiceImport != nil || result.DerivedService != nil ||
				len(result.HandMadeSlices) > 0) {
				t.Errorf("something is written: %v", result)
			}
		})
	}
}

// TestHandMadeSlices: only those of the service that belong to no Service.
func TestHandMadeSlices(t *testing.T) {
	observed := handMade()
	labels := observed.HandMadeSlices[0].Labels
	labels[export.LabelKubernetesService] = "other"
	diff(t, "slice of another Service", len(Merge(observed, nil).HandMadeSlices), 0)
	delete(labels, export.LabelKubernetesService)
	labels[export.LabelService] = "db"
	diff(t, "slice of another import", len(Merge(observed, nil).HandMadeSlices), 0)
	labels[export.LabelService], labels[export.LabelSliceManagedBy] = "web", export.Manager
	diff(t, "slice of this controller", len(Merge(observed, nil).HandMadeSlices), 0)
}

// TestDeniedNamespaceServesNothing: neither the flag nor the annotation has an import served in a namespace that takes
// no part, and what serving brought before is taken back.
func TestDeniedNamespaceServesNothing(t *testing.T) {
	for name, served := range map[string]bool{"never served": false, "served before": true} {
		t.Run(name, func(t *testing.T) {
			observed := handMade()
			observed.ServiceImport.Annotations = map[string]string{export.AnnotationServe: "true"}
			if served {
				first := Merge(observed, nil)
				observed, _ = settled(t, observed, nil)
				observed.HandMadeSlices = first.HandMadeSlices
			}
			observed.Denied = true
			var slices []*discoveryv1.EndpointSlice
			for range 4 {
				result := Merge(observed, nil)
				slices = append(slices, result.HandMadeSlices...)
				if result.ServiceImport == nil {
					result.ServiceImport = observed.ServiceImport
				}
				observed = settle(observed, result)
			}
			if observed.DerivedService != nil || len(observed.ServiceImport.Spec.IPs) > 0 {
				t.Errorf("the import has IPs %v and Service %v", observed.ServiceImport.Spec.IPs,
					observed.DerivedService)
			}
			for _, slice := range slices {
				if slice.Labels[export.LabelKubernetesService] != "" {
					t.Errorf("slice %s is behind Service %s", slice.Name, slice.Labels[export.LabelKubernetesService])
				}
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Two services whose derived Services have the same name: such a pair takes seconds to find.
var (
	first  = types.NamespacedName{Namespace: "demo", Name: "s-k1qtda5r7c"}
	second = types.NamespacedName{Namespace: "demo", Name: "s-g9sgelsm7d"}
)

// TestAdopt: the controller adopts an import of another implementation with its IPs if the annotation requests it and a
// cluster exports the service. It also adopts its Service. Otherwise the import and the
// conditions of the export stay: Cilium sets these on each change.
func TestAdopt(t *testing.T) {
	for name, test := range map[string]struct {
		annotation         string
		service, exported  bool
		adopted, noDerived bool
	}{
		"not asked":                    {"", true, true, false, true},
		"no cluster exports":           {"true", true, false, false, true},
		"the Service has our name":     {"true", true, true, true, false},
		"the Service has another name": {"true", false, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			observed := newObserved("east")
			observed.Service = first
			observed.ServiceImport = &v1beta1.ServiceImport{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "demo", Name: first.Name, UID: "uid-of-import",
					// The reference implementation uses the same annotation and name.
					Annotations: map[string]string{
						export.AnnotationAdopt: test.annotation, export.AnnotationDerivedService: export.DerivedServiceName(first),
					},
				},
				Spec: v1beta1.ServiceImportSpec{Type: v1beta1.ClusterSetIP, IPs: []string{"10.96.0.9"}},
			}
			if test.service {
				observed.DerivedService = &corev1.Service{
					ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: export.DerivedServiceName(first), UID: "uid-of-service"},
					Spec: corev1.ServiceSpec{
						ClusterIP: "10.96.0.9", ClusterIPs: []string{"10.96.0.9"}, Selector: map[string]string{"app": "web"},
					},
				}
			}
			var contributions []Contribution
			if test.exported {
				ofFirst := func(v *export.View) { v.Service = first }
				contributions = contribute(newView("east", 1, "http:80/TCP", "10.1.0.1", ofFirst), newView("west", 2, "http:80/TCP", "10.2.0.1", ofFirst))
			}
			result := Merge(observed, contributions)
			imported, derived := result.ServiceImport, result.DerivedService
			diff(t, "import of this controller", imported != nil, test.adopted)
			diff(t, "no derived Service", derived == nil, test.noDerived)
			diff(t, "a foreign import has the name", result.Foreign, test.exported && !test.adopted)
			diff(t, "the observed import stays as it was", export.IsManaged(observed.ServiceImport), false)
			if !test.adopted {
				for _, invalid := range []*export.Invalid{nil, {Reason: "NamespaceDenied", Message: "denied"}} {
					observed.Invalid = invalid
					if conditions := Merge(observed, contributions).ExportConditions; len(conditions) > 0 {
						t.Errorf("conditions %v of an export that another implementation reports on", conditions)
					}
				}
				for _, slice := range result.EndpointSlices { // members read these regardless of the import
					diff(t, "cluster of a slice", slice.Labels[export.LabelSourceCluster], "east")
				}
				diff(t, "slices", len(result.EndpointSlices) > 0, test.exported)
				return
			}
			diff(t, "conditions", len(result.ExportConditions), 3)
			diff(t, "UID", string(imported.UID), "uid-of-import")
			diff(t, "IPs", imported.Spec.IPs, []string{"10.96.0.9"})
			observed.ServiceImport = imported
			diff(t, "IPs later", Merge(observed, contributions).ServiceImport.Spec.IPs, []string{"10.96.0.9"})
			diff(t, "IPs of the Service", derived.Spec.ClusterIPs, []string{"10.96.0.9"})
			diff(t, "selector", len(derived.Spec.Selector), 0)
			if was := observed.DerivedService; !export.IsManaged(derived) || was != nil && (derived.UID != was.UID || NeedsRecreation(was, derived)) {
				t.Errorf("the Service is not adopted: %v", derived)
			}
		})
	}
}

// TestForeignService: if a Service of another owner or import has the name of the derived one, it stays as it is and gets
// no endpoints.
func TestForeignService(t *testing.T) {
	for label, ours := range map[string]bool{"": false, first.Name: true, second.Name: false, "changed-by-hand": false} {
		observed := newObserved("east")
		observed.Service, observed.ServiceExport = first, nil
		observed.DerivedService = &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: export.DerivedServiceName(first)},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7"}},
		}
		if label != "" {
			export.Mark(observed.DerivedService)
			observed.DerivedService.Labels[export.LabelService] = label
		}
		result := Merge(observed, contribute(newView("east", 1, "http:80/TCP", "10.1.0.1", func(v *export.View) { v.Service = first })))
		want := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", Message: "The service is imported."}
		if !ours {
			want.Status, want.Reason = metav1.ConditionFalse, ReasonForeignService
			want.Message = "Service demo/" + export.DerivedServiceName(first) +
				" was not made for this import by clusterset-controller.clusterset-dns.github.io. Delete it to have the service imported."
		}
		diff(t, label+": ready", conditionOf(result.ServiceImport.Status.Conditions, "Ready"), want)
		diff(t, label+": the Service", result.DerivedService != nil, ours)
		diff(t, label+": IPs", len(result.ServiceImport.Spec.IPs) > 0, ours)
		for _, slice := range result.EndpointSlices {
			of := slice.Labels[export.LabelKubernetesService]
			diff(t, label+": slices", of == export.DerivedServiceName(first), ours)
			diff(t, label+": slices of no Service", of != strings.ToLower(of), !ours)
		}
	}
}

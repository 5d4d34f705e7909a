// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// Two services whose derived Services have the same name: such a pair takes seconds to find.
var (
	first  = types.NamespacedName{Namespace: "demo", Name: "s-k1qtda5r7c"}
	second = types.NamespacedName{Namespace: "demo", Name: "s-g9sgelsm7d"}
)

// TestDerivedServiceOfAnotherImport: it is as one of another owner, and no endpoint gets behind it. A label that names no
// service of that derived name gives it to nobody, so that it is corrected.
func TestDerivedServiceOfAnotherImport(t *testing.T) {
	for label, want := range map[string]string{first.Name: "Ready", second.Name: ReasonForeignService, "changed-by-hand": "Ready"} {
		observed := newObserved("east")
		observed.Service, observed.ServiceExport = first, nil
		observed.DerivedService = &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: export.DerivedServiceName(first),
			Labels: map[string]string{export.LabelManagedBy: export.Manager, export.LabelService: label},
		}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.7", ClusterIPs: []string{"10.96.0.7"}}}
		result := Merge(observed, contribute(newView("east", 1, "http:80/TCP", "10.1.0.1", func(v *export.View) { v.Service = first })))
		diff(t, label, conditionOf(t, result.ServiceImport.Status.Conditions, "Ready").Reason, want)
		diff(t, label+": the Service", result.DerivedService != nil, label != second.Name)
		diff(t, label+": IPs", len(result.ServiceImport.Spec.IPs) > 0, label != second.Name)
		for _, slice := range result.EndpointSlices {
			diff(t, label+": slices", slice.Labels[export.LabelKubernetesService] == export.DerivedServiceName(first), label != second.Name)
		}
	}
}

// TestAdoptTakesNoServiceOfAnother: another implementation's Service is taken
// over with the import that it belongs to, and with no other.
func TestAdoptTakesNoServiceOfAnother(t *testing.T) {
	for of, taken := range map[string]bool{first.Name: true, second.Name: false, "": true} {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: export.DerivedServiceName(first)},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.9", ClusterIPs: []string{"10.96.0.9"}},
		}
		if of != "" {
			service.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: "multicluster.x-k8s.io/v1alpha1",
				Kind:       "ServiceImport", Name: of, Controller: ptr.To(true),
			}}
		}
		observed := newObserved("east")
		observed.Service, observed.DerivedService = first, service
		observed.ServiceImport = &v1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: first.Name, Annotations: map[string]string{export.AnnotationAdopt: "true"},
		}}
		result := Merge(observed, contribute(newView("east", 1, "http:80/TCP", "10.1.0.1",
			func(v *export.View) { v.Service = first })))
		if (result.DerivedService != nil) != taken {
			t.Errorf("a Service of %q: the result has %v", of, result.DerivedService)
		}
	}
}

// TestATakenIPIsGivenUp: somebody deleted the derived Service, and another one got
// its IP, under which clients would reach another service.
func TestATakenIPIsGivenUp(t *testing.T) {
	views := contribute(newView("east", 1, "http:80/TCP", "10.1.0.1"))
	observed := newObserved("east")
	observed.ServiceImport = Merge(observed, views).ServiceImport
	observed.ServiceImport.Spec.IPs = []string{"10.96.0.7"}
	kept := Merge(observed, views)
	if got := kept.DerivedService.Spec.ClusterIP; got != "10.96.0.7" || len(kept.ServiceImport.Spec.IPs) != 1 {
		t.Errorf("the IP of a deleted Service: asked for %q, the import has %v", got, kept.ServiceImport.Spec.IPs)
	}
	observed.TakenIPs = []string{"10.96.0.7"}
	given := Merge(observed, views)
	if got := given.DerivedService.Spec.ClusterIP; got != "" || len(given.ServiceImport.Spec.IPs) > 0 {
		t.Errorf("an IP of another service: asked for %q, the import has %v", got, given.ServiceImport.Spec.IPs)
	}
}

// TestHeadlessUntilThereIsAnIP: an import that answers without an IP does not become one that answers nothing.
func TestHeadlessUntilThereIsAnIP(t *testing.T) {
	observed := newObserved("east")
	observed.ServiceImport = Merge(observed, contribute(newView("west", 1, "http:80/TCP", "10.2.0.1", func(v *export.View) {
		v.Spec.Type = v1beta1.Headless
	}))).ServiceImport
	if observed.ServiceImport.Spec.Type != v1beta1.Headless {
		t.Fatalf("the import is %s", observed.ServiceImport.Spec.Type)
	}
	views := contribute(newView("west", 1, "http:80/TCP", "10.2.0.1"))
	waits := Merge(observed, views)
	if waits.ServiceImport.Spec.Type != v1beta1.Headless || waits.DerivedService == nil {
		t.Errorf("without an IP it is %s, and asks for %v", waits.ServiceImport.Spec.Type, waits.DerivedService)
	}
	denied := observed
	denied.NoIP = "None is left."
	denied.ServiceImport = waits.ServiceImport
	if none := Merge(denied, views).ServiceImport; none.Spec.Type != v1beta1.Headless ||
		meta.FindStatusCondition(none.Status.Conditions, "Ready").Reason != ReasonClusterIPLimit {
		t.Errorf("if it may not get one, it is %s with %+v", none.Spec.Type, none.Status.Conditions)
	}
	observed.ServiceImport, observed.DerivedService = waits.ServiceImport, waits.DerivedService.DeepCopy()
	observed.DerivedService.Spec.ClusterIP, observed.DerivedService.Spec.ClusterIPs = "10.96.0.7", []string{"10.96.0.7"}
	has := Merge(observed, views).ServiceImport
	if has.Spec.Type != v1beta1.ClusterSetIP || len(has.Spec.IPs) != 1 || has.Annotations[export.AnnotationDerivedService] == "" {
		t.Errorf("with an IP it is %s with %v", has.Spec.Type, has.Spec.IPs)
	}
}

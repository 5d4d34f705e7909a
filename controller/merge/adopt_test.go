// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

func TestAdopt(t *testing.T) {
	contributions := []Contribution{{View: newView("west", 1, "http:80/TCP", "10.65.0.1")}}
	theirService := func(name string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name, UID: "uid-of-service"},
			Spec: corev1.ServiceSpec{
				ClusterIP: "10.96.0.9", ClusterIPs: []string{"10.96.0.9"},
				IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
				Selector:   map[string]string{"app": "web"},
			},
		}
	}
	for _, tc := range []struct {
		name          string
		annotation    string
		service       *corev1.Service
		contributions []Contribution
		// want are the IPs of the import and of the derived Service, nil where nothing of theirs is to be touched.
		want []string
	}{
		{"not asked", "", theirService(derivedName), contributions, nil},
		{"asked otherwise", "false", theirService(derivedName), contributions, nil},
		{"nobody exports", "true", theirService(derivedName), nil, nil},
		{"the Service has our name", "true", theirService(derivedName), contributions, []string{"10.96.0.9"}},
		{"the Service has another name", "true", nil, contributions, []string{"10.96.0.9"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			observed := newObserved("east")
			observed.ServiceExport = nil
			observed.DerivedService = tc.service
			observed.ServiceImport = &v1beta1.ServiceImport{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "demo", Name: "web", UID: "uid-of-import",
					// The reference implementation has the annotation and the name in common with this one.
					Annotations: map[string]string{
						export.AnnotationAdopt:          tc.annotation,
						export.AnnotationDerivedService: derivedName,
					},
				},
				Spec: v1beta1.ServiceImportSpec{Type: v1beta1.ClusterSetIP, IPs: []string{"10.96.0.9"}},
			}
			result := Merge(observed, tc.contributions)
			if tc.want == nil {
				if result.ServiceImport != nil || result.DerivedService != nil {
					t.Errorf("the result is %v and %v", result.ServiceImport, result.DerivedService)
				}
				return
			}
			imported, derived := result.ServiceImport, result.DerivedService
			if imported == nil || derived == nil {
				t.Fatalf("the result is %v and %v", imported, derived)
			}
			if !export.IsManaged(imported) || !export.IsManaged(derived) || imported.UID != "uid-of-import" ||
				!slices.Equal(imported.Spec.IPs, tc.want) || !slices.Equal(derived.Spec.ClusterIPs, tc.want) ||
				derived.Spec.Selector != nil {
				t.Errorf("the result is %v and %v", imported, derived)
			}
			if tc.service != nil && (derived.UID != tc.service.UID || NeedsRecreation(tc.service, derived)) {
				t.Errorf("the Service is made anew: %v", derived)
			}
			diff(t, "the import as it was", export.IsManaged(observed.ServiceImport), false)
			// What was taken over stays so.
			observed.ServiceImport = imported
			diff(t, "IPs", Merge(observed, tc.contributions).ServiceImport.Spec.IPs, tc.want)
		})
	}
}

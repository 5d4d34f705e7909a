// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestKeepsImport: an import outlives the Service of an export, and no import comes of an export without one.
func TestKeepsImport(t *testing.T) {
	observed, last := settled(t, newObserved("east"),
		contribute(newView("east", 1, "http:80/TCP", "10.1.0.1", labels("team=red"))))
	noService := &export.Invalid{Reason: "NoService", Message: "Service demo/web does not exist."}

	observed.Invalid = noService
	gone, result := settled(t, observed, contribute(newAbsent("east")))
	want := last.ServiceImport.DeepCopy()
	want.Status = result.ServiceImport.Status
	diff(t, "import", result.ServiceImport, want)
	diff(t, "derived Service", result.DerivedService, last.DerivedService)
	diff(t, "slices", result.EndpointSlices, []*discoveryv1.EndpointSlice{publishedAbsent(t, "east")})
	if len(result.ServiceImport.Status.Clusters) > 0 {
		t.Errorf("clusters %v", result.ServiceImport.Status.Clusters)
	}
	diff(t, "endpointSliceObjects", string(result.ServiceImport.Status.EndpointSliceObjects), "Absent")
	diff(t, "ready", conditionOf(t, result.ServiceImport.Status.Conditions, "Ready"), metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Pending",
		Message: "No cluster exports the service. The import stays for the ServiceExport of \"east\", whose Service does not exist.",
	})

	t.Run("the derived Service comes back with its IP", func(t *testing.T) {
		observed := gone
		observed.DerivedService = nil
		diff(t, "IPs", Merge(observed, contribute(newAbsent("east"))).DerivedService.Spec.ClusterIPs,
			[]string{"10.96.0.7"})
	})
	t.Run("an API without families", func(t *testing.T) {
		observed := gone
		observed.ServiceImport = gone.ServiceImport.DeepCopy()
		observed.ServiceImport.Spec.IPFamilies = nil
		diff(t, "families", Merge(observed, contribute(newAbsent("east"))).DerivedService.Spec.IPFamilies,
			[]corev1.IPFamily{"IPv4"})
	})
	t.Run("the Service comes back", func(t *testing.T) {
		observed := gone
		observed.Invalid = nil
		_, result := settled(t, observed, contribute(newView("east", 1, "http:80/TCP", "10.1.0.1", labels("team=red"))))
		diff(t, "result", result, last)
	})
	t.Run("another cluster exports it", func(t *testing.T) {
		_, result := settled(t, gone, contribute(newView("west", 1, "http:80/TCP", "10.2.0.1"), newAbsent("east")))
		diff(t, "IPs", result.ServiceImport.Spec.IPs, []string{"10.96.0.7"})
		diff(t, "clusters", len(result.ServiceImport.Status.Clusters), 1)
		diff(t, "slices", len(result.EndpointSlices), 2)
	})
	for name, change := range map[string]func(*Observed){
		"the export goes":        func(o *Observed) { o.ServiceExport, o.Invalid = nil, nil },
		"the export is going":    func(o *Observed) { o.ServiceExport.DeletionTimestamp = &metav1.Time{Time: day(9)} },
		"the Service is invalid": func(o *Observed) { o.Invalid = &export.Invalid{Reason: "InvalidServiceType"} },
	} {
		t.Run(name, func(t *testing.T) {
			observed := gone
			observed.ServiceExport = gone.ServiceExport.DeepCopy()
			change(&observed)
			result := Merge(observed, nil)
			if result.ServiceImport != nil || result.DerivedService != nil || len(result.EndpointSlices) > 0 {
				t.Errorf("result %v", result)
			}
		})
	}
}

// TestAbsentAlone: no import comes of an export without a Service. It is
// published all the same, for clusters that have one.
func TestAbsentAlone(t *testing.T) {
	want := []*discoveryv1.EndpointSlice{publishedAbsent(t, "east")}
	result := Merge(newObserved("east"), contribute(newAbsent("west"), newAbsent("east")))
	if result.ServiceImport != nil || result.DerivedService != nil {
		t.Errorf("result %v", result)
	}
	diff(t, "slices", result.EndpointSlices, want)

	foreign := newObserved("east")
	foreign.ServiceImport = &v1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web"}}
	diff(t, "slices beside an import of somebody else",
		Merge(foreign, contribute(newAbsent("west"), newAbsent("east"))).EndpointSlices, want)
}

// publishedAbsent is the slice by which a cluster publishes an export whose Service does not exist.
func publishedAbsent(t *testing.T, cluster string) *discoveryv1.EndpointSlice {
	t.Helper()
	view := newAbsent(cluster)
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: view.Slices[0].Name,
			Labels: map[string]string{
				export.LabelService: "web", export.LabelSourceCluster: cluster, export.LabelKubernetesService: "WEB",
				export.LabelSliceManagedBy: export.Manager,
			},
			Annotations: export.NewEncoder(view).Annotations(&view.Slices[0], nil),
			OwnerReferences: []metav1.OwnerReference{owner(newObserved(cluster), v1beta1.ServiceExportKindName,
				"uid-of-export")},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{},
	}
}

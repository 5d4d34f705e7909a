// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// TestKeepsImport: an import outlives the Service of an export. checkReplaced checks the same of random cluster sets.
func TestKeepsImport(t *testing.T) {
	observed, _ := settled(t, newObserved("east"), contribute(newView("east", 1, "http:80/TCP", "10.1.0.1")))
	observed, result := settled(t, observed, contribute(newAbsent("east")))
	diff(t, "slices", result.EndpointSlices, []*discoveryv1.EndpointSlice{publishedAbsent()})
	diff(t, "endpointSliceObjects", string(result.ServiceImport.Status.EndpointSliceObjects), "Absent")
	diff(t, "ready", conditionOf(t, result.ServiceImport.Status.Conditions, "Ready"), metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Pending",
		Message: "No cluster exports the service. The import stays for the ServiceExport of \"east\", whose Service does not exist.",
	})

	// The derived Service comes back, also behind an API that has no families.
	observed.DerivedService, observed.ServiceImport.Spec.IPFamilies = nil, nil
	derived := Merge(observed, contribute(newAbsent("east"))).DerivedService
	diff(t, "IPs of the derived Service", derived.Spec.ClusterIPs, []string{"10.96.0.7"})
	diff(t, "its families", derived.Spec.IPFamilies, []corev1.IPFamily{"IPv4"})

	_, result = settled(t, observed, contribute(newView("west", 1, "http:80/TCP", "10.2.0.1"), newAbsent("east")))
	diff(t, "IPs when another cluster exports it", result.ServiceImport.Spec.IPs, []string{"10.96.0.7"})
	diff(t, "clusters", len(result.ServiceImport.Status.Clusters), 1)
	diff(t, "slices of both", len(result.EndpointSlices), 2)
}

// TestAbsentAlone: no import comes of an export without a Service. It is
// published all the same, for clusters that have one.
func TestAbsentAlone(t *testing.T) {
	want := []*discoveryv1.EndpointSlice{publishedAbsent()}
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

// publishedAbsent is the slice by which east publishes an export whose Service does not exist.
func publishedAbsent() *discoveryv1.EndpointSlice {
	view := newAbsent("east")
	return sliceOf(view, view.Slices[0].Name, "WEB", owner(newObserved("east"), v1beta1.ServiceExportKindName, "uid-of-export"))
}

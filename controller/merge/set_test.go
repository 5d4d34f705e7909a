// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestSet: all that is made is of the set of the controller. For the controller of another set it is foreign, also if that
// serves all hand-made imports.
func TestSet(t *testing.T) {
	views := contribute(newView("east", 1, "80/TCP", "10.1.0.1"), newView("west", 2, "80/TCP", "10.2.0.1"))
	for _, set := range []export.Set{"", "blue"} {
		other := export.Set("green")
		observed := newObserved("east")
		observed.Set = set
		observed, result := settled(t, observed, views)
		for _, slice := range result.EndpointSlices {
			if !set.Manages(slice) || other.Manages(slice) {
				t.Errorf("%s made a slice with %v", set, slice.Labels)
			}
		}
		if len(result.EndpointSlices) != 2 || !set.Manages(result.ServiceImport) || !set.Manages(result.DerivedService) {
			t.Errorf("%s made %v, %v and %d slices", set, result.ServiceImport.Labels, result.DerivedService.Labels,
				len(result.EndpointSlices))
		}

		for _, of := range [][]Contribution{nil, views} {
			foreigner := observed
			foreigner.Set, foreigner.ServeHandMade = other, true
			result := Merge(foreigner, of)
			if result.ServiceImport != nil || result.DerivedService != nil {
				t.Errorf("%s changes what %s made", other, set)
			}
			for _, slice := range result.EndpointSlices {
				if slice.Labels[export.LabelSourceCluster] != "east" {
					t.Errorf("%s writes %s without an import", other, slice.Name)
				}
			}
			foreigner.Denied, foreigner.ServiceExport = true, nil
			if result := Merge(foreigner, nil); result.ServiceImport != nil || result.DerivedService != nil ||
				len(result.EndpointSlices) > 0 || len(result.ExportConditions) > 0 {
				t.Errorf("%s writes for a namespace of %s", other, set)
			}
		}

		adopting := observed
		adopting.Set, adopting.ServiceImport = other, observed.ServiceImport.DeepCopy()
		adopting.ServiceImport.Annotations[export.AnnotationAdopt] = "true"
		adopted := Merge(adopting, views)
		if adopted.ServiceImport == nil || !other.Manages(adopted.ServiceImport) ||
			adopted.ServiceImport.Spec.IPs[0] != observed.ServiceImport.Spec.IPs[0] {
			t.Errorf("%s did not adopt the import of %s", other, set)
		}
		left := adopting
		left.Set, left.ServiceImport, left.Denied, left.ServiceExport = set, adopted.ServiceImport, true, nil
		if result := Merge(left, nil); result.ServiceImport != nil || result.DerivedService != nil {
			t.Errorf("%s changes an import that %s adopted", set, other)
		}
	}
}

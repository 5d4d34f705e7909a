// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestSet: all that is made is of the set of the controller. For the controller of another set it is foreign.
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
			foreigner.Set = other
			result := Merge(foreigner, of)
			if result.ServiceImport != nil || result.DerivedService != nil {
				t.Errorf("%s changes what %s made", other, set)
			}
			for _, slice := range result.EndpointSlices {
				if slice.Labels[export.LabelSourceCluster] != "east" {
					t.Errorf("%s writes %s without an import", other, slice.Name)
				}
			}
			foreigner.ServiceExport = nil
			if result := Merge(foreigner, nil); result.ServiceImport != nil || result.DerivedService != nil ||
				len(result.EndpointSlices) > 0 || len(result.ExportConditions) > 0 {
				t.Errorf("%s writes for a namespace of %s", other, set)
			}
		}

		// What was made is not adopted either: slices of the other set could stay behind the Service.
		adopting := observed
		adopting.Set, adopting.ServiceImport = other, observed.ServiceImport.DeepCopy()
		adopting.ServiceImport.Annotations[export.AnnotationAdopt] = "true"
		if result := Merge(adopting, views); result.ServiceImport != nil || result.DerivedService != nil {
			t.Errorf("%s adopts the import of %s", other, set)
		}
		other.Mark(adopting.ServiceImport)
		if result := Merge(adopting, views); result.DerivedService != nil ||
			result.ServiceImport.Status.Conditions[0].Reason != ReasonForeignService {
			t.Errorf("%s adopts the Service of %s", other, set)
		}
	}
}

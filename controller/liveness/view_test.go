// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/export/exporttest"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// TestRefusedSliceStays: a slice that cannot be understood stays as the copy
// has it, also where what is wrong is its address type.
func TestRefusedSliceStays(t *testing.T) {
	web := exporttest.Web
	for _, addressType := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		view := exporttest.View("west", 1, "80/TCP", "")
		view.Slices[0].AddressType = addressType
		published := merge.Merge(merge.Observed{Cluster: "west", Service: web}, []merge.Contribution{{View: view}}).EndpointSlices[0]
		known := published.DeepCopy()
		known.Name = export.SliceName("west", web, published.Name, addressType)
		for name, refuse := range map[string]func(*discoveryv1.EndpointSlice){
			"address type": func(slice *discoveryv1.EndpointSlice) { slice.AddressType = discoveryv1.AddressTypeFQDN },
			"label":        func(slice *discoveryv1.EndpointSlice) { slice.Labels[export.LabelSourceCluster] = "north" },
			"snapshot":     func(slice *discoveryv1.EndpointSlice) { slice.Annotations = nil },
		} {
			wrong := published.DeepCopy()
			refuse(wrong)
			publishes, copies := []*discoveryv1.EndpointSlice{wrong}, []*discoveryv1.EndpointSlice{known}
			got, problems, used := Verdict{}.View(export.Source{Cluster: "west"}, web, publishes, copies)
			if got == nil || len(got.Slices) != 1 || len(problems) != 1 || len(used) != 1 {
				t.Errorf("%s of an %s slice: the view is %+v, the problems %v", name, addressType, got, problems)
			}
			// While the slices are not believed, the copies count, also if the local cluster is in another network meanwhile.
			got, problems, used = Verdict{Keep: true}.View(export.Source{Cluster: "west", Network: "another"}, web, publishes, copies)
			if got == nil || len(got.Slices) != 1 || len(problems) > 0 || len(used) != 1 {
				t.Errorf("of a member that is not believed, the view is %+v, the problems %v", got, problems)
			}
		}
	}
}

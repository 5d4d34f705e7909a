// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// TestOnlyWhatIsExportedIsRead: the API server of a member does not even send
// the slices that the member does not export.
func TestOnlyWhatIsExportedIsRead(t *testing.T) {
	t.Parallel()
	bed := &realBed{}
	run(t, bed, func(s *scenario.Set, east, west *scenario.Cluster) {
		s.Judged(s.Pair("east", "west"), "Heard")
		way := bed.remote("east", "west")
		before := way.Received()
		for i := range 20 {
			var addresses []string
			for j := range 100 {
				addresses = append(addresses, fmt.Sprintf("10.65.%d.%d", i+10, j+1))
			}
			west.Serve(fmt.Sprintf("quiet-%d:%s", i, strings.Join(addresses, ",")))
		}
		west.Export("web:10.65.0.10")
		s.Expect(scenario.View{"web": "west/10.65.0.10 -> VIP"}, east)
		sent, unexported := way.Received()-before, 0
		list, err := west.Kube.DiscoveryV1().EndpointSlices(s.Namespace()).List(t.Context(), metav1.ListOptions{LabelSelector: "!" + export.LabelSourceCluster})
		must(t, err)
		for i := range list.Items {
			unexported += list.Items[i].Size()
		}
		if len(list.Items) != 21 || int(sent) > unexported/2 {
			t.Errorf("west sent %d bytes; its %d slices that are not exported have %d", sent, len(list.Items), unexported)
		}
	})
}

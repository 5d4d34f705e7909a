// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"os"
	"testing"
	"time"

	"sigs.k8s.io/mcs-api/config/crd"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestDefinitionsAreUpgraded follows the CustomResourceDefinitions of a cluster
// from those of 2020, which serve v1alpha1 alone, to those of today. Neither the
// upgrade, nor one of the other cluster, takes anything from anybody.
func TestDefinitionsAreUpgraded(t *testing.T) {
	old, err := os.ReadFile("../controller/testdata/crds-2020.yaml")
	must(t, err)
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		east.Undefine()
		sim.Wait(10 * time.Second)
		east.Define(old)
		sim.Wait(10 * time.Second)
		east.Serve("own", false, "10.64.0.1")
		east.ExportIn("v1alpha1", "own")
		west.Serve("web", false, "10.65.0.1")
		west.Serve("db", true, "10.65.0.2")
		west.Export("web")
		west.Export("db")
		sim.Wait(10 * time.Second)
		want := map[string]string{"own": "east/10.64.0.1 -> VIP", "web": "west/10.65.0.1 -> VIP", "db": "west/10.65.0.2 -> 10.65.0.2"}
		inEast := map[string]string{"own": "east/10.64.0.1", "web": "west/10.65.0.1", "db": "west/10.65.0.2"}
		for service, endpoints := range inEast {
			if got := east.Endpoints(service); got != endpoints {
				t.Errorf("with v1alpha1: %s\ngot  %s\nwant %s", service, got, endpoints)
			}
		}
		expect(t, west, want)

		east.Define(crd.ServiceExportCRD, crd.ServiceImportCRD)
		for range 100 { // at any moment
			sim.Wait(100 * time.Millisecond)
			for service, endpoints := range inEast {
				for _, each := range set.Clusters() {
					if got := each.Endpoints(service); got != endpoints {
						t.Fatalf("%s while its CustomResourceDefinitions are upgraded: %s\ngot  %s\nwant %s", each.Name, service, got, endpoints)
					}
				}
			}
		}
		expect(t, east, want)
		expect(t, west, want)
	})
}

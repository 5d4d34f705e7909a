// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// TestDefinitions follows the CRDs of one cluster: none, those of some years
// ago, those of today, none again, today's again.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	bed := &realBed{}
	run(t, bed, func(s *scenario.Set, east, west *scenario.Cluster) {
		install := func(crds controlplane.CRDs) {
			t.Helper()
			must(t, bed.planes["east"].InstallCRDs(t.Context(), crds))
		}
		defer install(controlplane.CRDsAll)
		const served = "clusterset_controller_mcs_api_served"
		both := scenario.View{"web": "west/10.65.0.10 -> VIP", "own": "east/10.64.0.10 -> VIP"}
		east.Stop()
		install(controlplane.CRDsNone)
		east.Start()
		west.Export("web:10.65.0.10")
		s.Expect(scenario.View{"web": both["web"]}, west)
		east.ExpectMetric(1, "clusterset_controller_leader")
		s.Eventually("not served", func() error {
			if value, is := east.Metric(served, "version", "v1alpha1"); is {
				return fmt.Errorf("served: %v", value)
			}
			return nil
		})

		old, err := os.ReadFile("testdata/crds-2020.yaml")
		must(t, err)
		must(t, clusterset.Apply(t.Context(), bed.planes["east"], old))
		expect2020(s, east, "web")
		east.ExpectMetric(1, served, "version", "v1alpha1")
		east.Serve("own:10.64.0.10")
		east.Put("{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceExport, metadata: {name: own}}")
		expect2020(s, east, "own")
		s.Quiet(east)

		install(controlplane.CRDsAll)
		east.ExpectMetric(1, served, "version", "v1beta1")
		s.Expect(both, east)
		s.Quiet(east)

		// Without the API nothing is exported or imported: it is the
		// administrator's word.
		install(controlplane.CRDsNone)
		s.Eventually("all gone", func() error {
			if left := len(east.Slices("web")) + len(east.Slices("own")); left > 0 {
				return fmt.Errorf("%d slices", left)
			}
			return nil
		})
		install(controlplane.CRDsAll)
		s.Expect(scenario.View{"web": both["web"]}, east)
		east.PutExport("own", "{}")
		s.Expect(both, east)
	})
}

// expect2020 waits for an import from one cluster in the form that v1alpha1 had:
// one IP, no conditions.
func expect2020(s *scenario.Set, c *scenario.Cluster, name string) {
	s.Helper()
	imports := c.Dynamic.Resource(schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "serviceimports"})
	s.Eventually("import "+name, func() error {
		object, err := imports.Namespace(s.Namespace()).Get(s.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		ips, _, err := unstructured.NestedStringSlice(object.Object, "spec", "ips")
		if err != nil {
			return err
		}
		clusters, _, err := unstructured.NestedSlice(object.Object, "status", "clusters")
		if err == nil && (len(ips) != 1 || len(clusters) != 1) {
			err = fmt.Errorf("IPs %v, clusters %v", ips, clusters)
		}
		return err
	})
}

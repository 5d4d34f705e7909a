// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
)

// TestDefinitions follows the CRDs of one cluster: none, those of some years
// ago, those of today, none again, today's again.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	east, west := bed(t)
	t.Cleanup(func() { must(t, east.InstallCRDs(context.Background(), controlplane.CRDsAll)) })
	must(t, east.InstallCRDs(t.Context(), controlplane.CRDsNone))
	west.start(t)
	east.join(t, west)
	east.start(t)
	demo := namespace(t, west, east)
	web, own := key(demo, "web"), key(demo, "own")
	west.create(t, demo, service("web", "10.65.0.10")+serviceExport("web"))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", west)
	eventually(t, "leading", east.metric(t, "clusterset_controller_leader", nil, 1))
	eventually(t, "not served", func(context.Context) error {
		if served, err := east.gather("clusterset_controller_mcs_api_served", map[string]string{"version": "v1alpha1"}); err != nil || served != nil {
			return fmt.Errorf("served: %v %w", served, err)
		}
		return nil
	})

	old, err := os.ReadFile("testdata/crds-2020.yaml")
	must(t, err)
	east.create(t, "", string(old))
	east.imported2020(t, demo, "web", 1)
	eventually(t, "served", east.metric(t, "clusterset_controller_mcs_api_served", map[string]string{"version": "v1alpha1"}, 1))
	east.create(t, demo, service("own", "10.64.0.10")+strings.ReplaceAll(serviceExport("own"), "v1beta1", "v1alpha1"))
	east.imported2020(t, demo, "own", 1)
	quiet(t, east)

	must(t, east.InstallCRDs(t.Context(), controlplane.CRDsAll))
	eventually(t, "served", east.metric(t, "clusterset_controller_mcs_api_served", map[string]string{"version": "v1beta1"}, 1))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
	expect(t, own, "ClusterSetIP of east Ready [east/10.64.0.10]", east)
	expectConditions(t, east, own, "Conflict=NoConflicts Ready=Ready Valid=Valid")
	quiet(t, east)

	// Without the API nothing is exported or imported: it is the
	// administrator's word.
	must(t, east.InstallCRDs(t.Context(), controlplane.CRDsNone))
	eventually(t, "all gone", func(ctx context.Context) error {
		list, err := east.DiscoveryV1().EndpointSlices(demo).List(ctx, metav1.ListOptions{LabelSelector: "multicluster.kubernetes.io/service-name"})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d slices", len(list.Items))
		}
		return err
	})
	must(t, east.InstallCRDs(t.Context(), controlplane.CRDsAll))
	expect(t, web, "ClusterSetIP of west Ready [west/10.65.0.10]", east)
	east.create(t, demo, serviceExport("own"))
	expect(t, own, "ClusterSetIP of east Ready [east/10.64.0.10]", east)
}

// imported2020 waits for an import from so many clusters in the form that
// v1alpha1 had: one IP, no conditions.
func (c *cluster) imported2020(t testing.TB, namespace, name string, from int) {
	t.Helper()
	imports := c.Dynamic().Resource(schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "serviceimports"})
	eventually(t, "import "+name, func(ctx context.Context) error {
		object, err := imports.Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		ips, _, err := unstructured.NestedStringSlice(object.Object, "spec", "ips")
		if err != nil {
			return err
		}
		clusters, _, err := unstructured.NestedSlice(object.Object, "status", "clusters")
		if err == nil && (len(ips) != 1 || len(clusters) != from) {
			err = fmt.Errorf("IPs %v, clusters %v", ips, clusters)
		}
		return err
	})
}

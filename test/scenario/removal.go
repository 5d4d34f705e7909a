// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// deleteCRDs deletes the CRDs of the resources, and with them all objects.
func (c *Cluster) deleteCRDs(resources ...string) {
	for _, each := range resources {
		c.set.must(
			c.Dynamic.Resource(definitions).Delete(c.set.Context(), each+".multicluster.x-k8s.io",
				metav1.DeleteOptions{}))
	}
	for _, each := range resources {
		c.set.Eventually(each+" are not served", func() error {
			if _, err := c.Dynamic.Resource(mcsResource(each)).List(c.set.Context(),
				metav1.ListOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("they are, or: %w", err)
			}
			return nil
		})
	}
}

// createCRDs creates all CRDs.
func (c *Cluster) createCRDs() {
	c.putCRDs("v1beta1", clusterset.CRDs)
}

// putCRDs creates or changes all CRDs, and waits until a version is served.
func (c *Cluster) putCRDs(version, text string) {
	c.set.Eventually("CRDs", func() error { return c.put(c.set.Context(), text) })
	for _, each := range []string{"serviceexports", "serviceimports"} {
		c.set.Eventually(each+" are served", func() error {
			_, err := c.Dynamic.Resource(mcsResource(each).GroupResource().WithVersion(version)).List(c.set.Context(),
				metav1.ListOptions{})
			return err
		})
	}
}

// crds2020 serves only v1alpha1, with fewer fields.
//
//go:embed testdata/crds-2020.yaml
var crds2020 string

// upgrade: a cluster has no CRDs, then the CRDs of 2020, then the current ones. Endpoints are complete at every moment
// of the upgrade.
func upgrade(s *Set, west, dual *Cluster) {
	const served = "clusterset_controller_mcs_api_served"
	dual.Stop()
	dual.deleteCRDs("serviceexports", "serviceimports")
	dual.Start()
	west.Export("web:10.65.0.10", "db!10.65.0.11")
	s.Expect(web(ofWest), west)
	dual.ExpectMetric(1, "clusterset_controller_leader")
	if value, is := dual.Metric(served, "version", "v1alpha1"); is {
		s.Errorf("without CRDs the metric %s is %v", served, value)
	}

	dual.putCRDs("v1alpha1", crds2020)
	dual.ExpectMetric(1, served, "version", "v1alpha1")
	dual.PutService("own", "{ports: [{name: http, port: 80}]}")
	dual.SetEndpoints("own", "10.64.0.10")
	dual.Put("{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceExport, metadata: {name: own}}")
	endpoints := View{"own": "dual/10.64.0.10", "web": "west/10.65.0.10", "db": "west/10.65.0.11"}
	for service, want := range endpoints {
		s.Eventually("import of 2020 of "+service, func() error { return dual.differs2020(service, want) })
	}
	s.Quiet(dual)

	dual.createCRDs()
	for range 40 {
		s.Pass(250 * time.Millisecond)
		for service, want := range endpoints {
			for _, c := range s.clusters {
				if texts, _, _ := c.endpoints(service); strings.Join(texts, " ") != want {
					s.Fatalf("%s in %s after the upgrade: %v, want %s", service, c.Name, texts, want)
				}
			}
		}
	}
	dual.ExpectMetric(1, served, "version", "v1beta1")
	s.Expect(View{"own": "dual/10.64.0.10 -> VIP", "web": ofWest, "db": "west/10.65.0.11 -> 10.65.0.11"})
	s.Quiet(dual)
}

// differs2020 returns an error if an import differs in the fields that v1alpha1 had: one IP, no conditions.
func (c *Cluster) differs2020(service, want string) error {
	imported, err := c.Dynamic.Resource(mcsResource("serviceimports").GroupResource().WithVersion("v1alpha1")).
		Namespace(c.set.namespace).Get(c.set.Context(), service, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ips, _, _ := unstructured.NestedStringSlice(imported.Object, "spec", "ips")
	clusters, _, _ := unstructured.NestedSlice(imported.Object, "status", "clusters")
	answer := c.DNS.Text(service, c.set.namespace)
	texts, _, _ := c.endpoints(service)
	if headless := service == "db"; strings.Join(texts, " ") != want || len(clusters) != 1 ||
		!headless && !slices.Equal(ips, []string{answer}) {
		return fmt.Errorf("endpoints %v, IPs %v, clusters %v, the answer %s", texts, ips, clusters, answer)
	}
	return nil
}

// removal: an administrator removes objects on which services depend. Unlike lost contact, that is intended: all
// clusters follow, and recover when the objects are back.
func removal(s *Set, east, west, north *Cluster) {
	const stopped = "clusterset_controller_heartbeat_stopped"
	west.deleteCRDs("serviceexports", "serviceimports")
	s.Except(west, nothing, westGone)
	west.ExpectMetric(1, stopped, "reason", "inputs")
	s.Eventually("the alert ClusterSetAPIMissing fires", func() error {
		if _, is := west.Metric("clusterset_controller_mcs_api_served", "version", "v1beta1"); is {
			return errors.New("the API counts as served")
		}
		return nil
	})
	s.Holds(10*time.Second, westGone, east, north)
	west.createCRDs()
	s.Expect(westGone)
	west.ExpectMetric(0, stopped, "reason", "inputs")
	exportAll(west)
	s.Expect(healthy)

	// A reader without CRDs does not affect other clusters.
	east.deleteCRDs("serviceexports", "serviceimports")
	s.Except(east, nothing, healthy)
	west.SetEndpoints("lone", "10.65.0.9")
	seen := healthy.With("lone", "west/10.65.0.9 -> 10.65.0.9")
	s.Except(east, nothing, seen)
	east.createCRDs()
	s.Expect(seen)
}

// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
	"github.com/clusterset-dns/clusterset-dns/controller/scope"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
	"github.com/clusterset-dns/clusterset-dns/test/sim/apiserver"
)

// refused is a fault: requests for a resource fail with a status.
func refused(resource string, code int) apiserver.Fault {
	return func(req *http.Request, serve apiserver.Serve) (*http.Response, error) {
		if !slices.Contains(strings.Split(req.URL.Path, "/"), resource) {
			return serve(req)
		}
		return &http.Response{StatusCode: code, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	}
}

// TestTermWithoutListedProperties: a controller that cannot list the properties of its cluster leads with those of its
// heartbeat: what was imported because of them stays, also in other clusters.
func TestTermWithoutListedProperties(t *testing.T) {
	definition, err := os.ReadFile("testdata/about.yaml")
	must(t, err)
	for _, code := range []int{http.StatusForbidden, http.StatusInternalServerError} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
				east, west := set.Cluster("east"), set.Cluster("west")
				east.Define(definition)
				regions := putInEurope(t, east)
				west.Serve("web", false, "10.65.0.1")
				west.ExportWith("web", map[string]string{export.AnnotationClusters: "region=eu"}, nil)
				imported := map[string]string{"web": "west/10.65.0.1 -> VIP"}
				judge := func(when string) {
					t.Helper()
					lease, err := east.Kube.CoordinationV1().Leases(member.DefaultNamespace).Get(t.Context(),
						member.HeartbeatLease, metav1.GetOptions{})
					must(t, err)
					if text := lease.Annotations[scope.PropertiesAnnotation]; text != `{"region":"eu"}` {
						t.Errorf("%s: the heartbeat has %q", when, text)
					}
					if age := time.Since(lease.Spec.RenewTime.Time); age > 6*time.Second {
						t.Errorf("%s: the heartbeat is %s old", when, age)
					}
					expect(t, east, imported)
				}
				sim.Wait(2 * time.Minute)
				judge("before")
				east.API.SetFault("", refused("clusterproperties", code))
				east.StopController()
				east.StartController()
				sim.Wait(2 * time.Minute)
				judge("without a list")
				west.SetEndpoints("web", "10.65.0.2")
				imported["web"] = "west/10.65.0.2 -> VIP"
				sim.Wait(10 * time.Second)
				judge("after a change")
				must(t, regions.Delete(t.Context(), "region", metav1.DeleteOptions{}))
				east.API.SetFault("", nil)
				sim.Wait(30 * time.Second)
				expect(t, east, map[string]string{"web": "-> NXDOMAIN"})
			})
		})
	}
}

// TestUnknownProperties: no border admits a cluster by what it is not while its properties are unknown.
func TestUnknownProperties(t *testing.T) {
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		for i, c := range set.Clusters() {
			c.Serve("web", false, []string{"10.64.0.1", "10.65.0.1"}[i])
			c.ExportWith("web", nil, map[string]string{export.AnnotationWithin: "region!=us"})
		}
		inside := map[string]string{"web": "east/10.64.0.1 west/10.65.0.1 -> VIP"}
		outside := map[string]string{"web": "east/10.64.0.1 west/10.65.0.1- -> VIP"}
		sim.Wait(time.Minute)
		expect(t, east, inside) // without properties
		// The next controller of west has neither the right to list them nor a heartbeat that says which they were.
		west.StopController()
		must(t, west.Kube.CoordinationV1().Leases(member.DefaultNamespace).Delete(t.Context(), member.HeartbeatLease,
			metav1.DeleteOptions{}))
		west.API.SetFault("", refused("clusterproperties", http.StatusForbidden))
		west.StartController()
		sim.Wait(65 * time.Second)
		expect(t, east, outside)
		east.StopController()
		east.StartController()
		sim.Wait(30 * time.Second)
		expect(t, east, outside)
		west.API.SetFault("", nil)
		sim.Wait(65 * time.Second)
		expect(t, east, inside)
	})
}

// putInEurope gives a cluster the ClusterProperty region=eu, and returns the client of its ClusterProperties. The API
// server must have the CRD.
func putInEurope(t *testing.T, c *sim.Cluster) dynamic.ResourceInterface {
	t.Helper()
	regions := c.Dynamic.Resource(schema.GroupVersionResource{
		Group: "about.k8s.io", Version: "v1alpha1", Resource: "clusterproperties",
	})
	_, err := regions.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "about.k8s.io/v1alpha1", "kind": "ClusterProperty",
		"metadata": map[string]any{"name": "region"}, "spec": map[string]any{"value": "eu"},
	}}, metav1.CreateOptions{})
	must(t, err)
	return regions
}

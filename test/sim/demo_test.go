// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/controller"
	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestTheDemoOfTheAPI does what docs/use/mcs-api-demo.md says, with its objects,
// and EndpointSlices in place of pods.
func TestTheDemoOfTheAPI(t *testing.T) {
	document, err := os.ReadFile("../../docs/use/mcs-api-demo.md")
	must(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(document, -1)
	if len(blocks) != 2 {
		t.Fatalf("the document has %d blocks of YAML, want 2", len(blocks))
	}
	sim.RunIdle(t, []string{"c1", "c2"}, func(t *testing.T, set *sim.ClusterSet) {
		// 1: the service in each cluster.
		addresses := map[string]string{"c1": "10.64.0.1", "c2": "10.65.0.1"}
		for _, c := range set.Clusters() {
			c.StartController(func(*controller.Options) {})
			c.StartDNS()
			put(t, c, schema.GroupVersionResource{Version: "v1", Resource: "services"}, blocks[0][1])
			c.SetEndpoints("serve", addresses[c.Name])
		}
		// 2: copies of both clusters' slices in both, and 3: the import.
		imports := v1beta1.SchemeGroupVersion.WithResource("serviceimports")
		for _, c := range set.Clusters() {
			for _, from := range set.Clusters() {
				imported, err := from.Kube.DiscoveryV1().EndpointSlices(sim.Namespace).Get(t.Context(), "serve-1",
					metav1.GetOptions{})
				must(t, err)
				imported.ObjectMeta = metav1.ObjectMeta{
					Name: "imported-" + from.Name, Labels: map[string]string{v1beta1.LabelServiceName: "serve"},
				}
				_, err = c.Kube.DiscoveryV1().EndpointSlices(sim.Namespace).Create(t.Context(), imported,
					metav1.CreateOptions{})
				must(t, err)
			}
			put(t, c, imports, blocks[1][1])
		}
		sim.Wait(10 * time.Second)
		for _, c := range set.Clusters() {
			// 4: the derived Service, its IP and its endpoints, and 5: the name.
			expect(t, c, map[string]string{"serve": "/10.64.0.1 /10.65.0.1 -> VIP"})
			imported, err := c.Dynamic.Resource(imports).Namespace(sim.Namespace).Get(t.Context(), "serve",
				metav1.GetOptions{})
			must(t, err)
			derived := imported.GetAnnotations()[export.AnnotationDerivedService]
			if !strings.Contains(string(document), derived) || derived == "" {
				t.Errorf("the document does not name the derived Service %s", derived)
			}
			list, err := c.Kube.DiscoveryV1().EndpointSlices(sim.Namespace).List(t.Context(),
				metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + derived})
			must(t, err)
			var behind []string
			for _, slice := range list.Items {
				behind = append(behind, slice.Endpoints[0].Addresses...)
			}
			if slices.Sort(behind); !slices.Equal(behind, []string{"10.64.0.1", "10.65.0.1"}) {
				t.Errorf("behind %s are %v", derived, behind)
			}
			// 6: and back.
			must(t,
				c.Dynamic.Resource(imports).Namespace(sim.Namespace).Delete(t.Context(), "serve",
					metav1.DeleteOptions{}))
			sim.Wait(10 * time.Second)
			expect(t, c, map[string]string{"serve": "/10.64.0.1 /10.65.0.1 -> NXDOMAIN"})
			if _, err := c.Kube.CoreV1().Services(sim.Namespace).Get(t.Context(), derived,
				metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the derived Service: %v, want NotFound", err)
			}
		}
	})
}

// put creates an object in the namespace of scenarios.
func put(t *testing.T, c *sim.Cluster, resource schema.GroupVersionResource, text []byte) {
	t.Helper()
	object := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal(text, &object.Object))
	_, err := c.Dynamic.Resource(resource).Namespace(sim.Namespace).Create(t.Context(), object, metav1.CreateOptions{})
	must(t, err)
}

// must ends the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

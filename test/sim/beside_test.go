// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestBesideOthers holds docs/use/beside-others.md: what k8gb and external-dns read of imports, and the patches of Argo
// Rollouts' Job.
func TestBesideOthers(t *testing.T) {
	document, err := os.ReadFile("../../docs/use/beside-others.md")
	must(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(document, -1)
	if len(blocks) != 4 {
		t.Fatalf("the document has %d blocks of YAML, want 4", len(blocks))
	}
	ingress := &networkingv1.Ingress{}
	must(t, yaml.UnmarshalStrict([]byte(strings.Split(string(blocks[0][1]), "---\n")[0]), ingress))
	backend := ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	filter, err := labels.Parse(find(t, document, `--label-filter=(\S+)`))
	must(t, err)
	patch := find(t, blocks[2][1], `--patch=(\S+)`)
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		east, west := set.Cluster("east"), set.Cluster("west")
		services := corev1.SchemeGroupVersion.WithResource("services")
		for _, c := range []*sim.Cluster{east, west} {
			put(t, c, services, blocks[1][1])
			c.Export("web")
		}
		east.SetEndpoints("web", "10.64.0.1", "10.64.0.2", "10.64.0.3")
		west.SetEndpoints("web", "10.65.0.1", "10.65.0.2", "10.65.0.3")
		sim.Wait(10 * time.Second)
		shares := func(c *sim.Cluster, wantEast, wantWest int) {
			t.Helper()
			got := map[string]int{}
			slices, err := c.Kube.DiscoveryV1().EndpointSlices(sim.Namespace).List(t.Context(),
				metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + backend.Name})
			must(t, err)
			for _, slice := range slices.Items {
				for _, each := range slice.Endpoints {
					if *each.Conditions.Ready {
						got[slice.Labels[v1beta1.LabelSourceCluster]]++
					}
				}
			}
			if got["east"] != wantEast || got["west"] != wantWest {
				t.Errorf("ready behind %s in %s: %v, want east %d, west %d", backend.Name, c.Name, got, wantEast, wantWest)
			}
		}
		for _, c := range []*sim.Cluster{east, west} {
			shares(c, 3, 3)
			derived, err := c.Kube.CoreV1().Services(sim.Namespace).Get(t.Context(), backend.Name, metav1.GetOptions{})
			must(t, err)
			if derived.Spec.Ports[0].Port != backend.Port.Number || derived.Spec.Type != corev1.ServiceTypeClusterIP {
				t.Errorf("%s in %s: %v", backend.Name, c.Name, derived.Spec)
			}
			for key := range derived.Annotations {
				if strings.HasPrefix(key, "external-dns") {
					t.Errorf("%s has the annotation %s", backend.Name, key)
				}
			}
			own, err := c.Kube.CoreV1().Services(sim.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
			must(t, err)
			if filter.Matches(labels.Set(derived.Labels)) || !filter.Matches(labels.Set(own.Labels)) {
				t.Errorf("%s selects the wrong Services: labels %v and %v", filter, derived.Labels, own.Labels)
			}
		}
		west.SetEndpoints("web")
		sim.Wait(10 * time.Second)
		shares(west, 3, 0)
		west.SetEndpoints("web", "10.65.0.1", "10.65.0.2", "10.65.0.3")

		exports := v1beta1.SchemeGroupVersion.WithResource("serviceexports")
		for _, step := range []struct {
			percent    string
			east, west int
		}{{"0", 3, 0}, {"10", 3, 1}, {"50", 3, 3}, {"0", 3, 0}} {
			if !strings.Contains(string(blocks[3][1]), `value: "`+step.percent+`"`) {
				t.Errorf("no step has %s %%", step.percent)
			}
			for _, c := range []*sim.Cluster{east, west} {
				_, err := c.Dynamic.Resource(exports).Namespace(sim.Namespace).Patch(t.Context(), "web", types.MergePatchType,
					[]byte(strings.ReplaceAll(patch, "{{args.percent}}", step.percent)), metav1.PatchOptions{})
				must(t, err)
			}
			sim.Wait(10 * time.Second)
			shares(east, step.east, step.west)
			shares(west, step.east, step.west)
		}
		// Weight 0 is the last resort.
		east.SetEndpoints("web")
		sim.Wait(10 * time.Second)
		shares(west, 0, 3)
	})
}

// find returns what the group of a pattern matches.
func find(t *testing.T, text []byte, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern).FindSubmatch(text)
	if match == nil {
		t.Fatalf("nothing matches %s", pattern)
	}
	return string(match[1])
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

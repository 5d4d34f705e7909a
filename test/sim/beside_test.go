// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/clusterset-dns/clusterset-dns/test/sim"
)

// TestBesideOthers holds docs/use/beside-others.md: what k8gb and external-dns read of imports. TestArgoRollouts of
// test/deploy has the patches of Argo Rollouts' Job.
func TestBesideOthers(t *testing.T) {
	document, err := os.ReadFile("../../docs/use/beside-others.md")
	must(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(document, -1)
	ingress, exported := &networkingv1.Ingress{}, &corev1.Service{}
	must(t, yaml.UnmarshalStrict([]byte(strings.Split(string(blocks[0][1]), "---\n")[0]), ingress))
	must(t, yaml.UnmarshalStrict(blocks[1][1], exported))
	backend := ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	filter, err := labels.Parse(string(regexp.MustCompile(`--label-filter=(\S+)`).FindSubmatch(document)[1]))
	must(t, err)
	sim.Run(t, []string{"east", "west"}, func(t *testing.T, set *sim.ClusterSet) {
		for i, c := range set.Clusters() {
			c.Put(exported.DeepCopy())
			c.Export(exported.Name)
			c.SetEndpoints(exported.Name, fmt.Sprintf("10.6%d.0.1", 4+i))
		}
		sim.Wait(10 * time.Second)
		ready := func(c *sim.Cluster) (sources []string) {
			slices, err := c.Kube.DiscoveryV1().EndpointSlices(sim.Namespace).List(t.Context(),
				metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + backend.Name})
			must(t, err)
			for _, slice := range slices.Items {
				for range slice.Endpoints {
					sources = append(sources, slice.Labels[v1beta1.LabelSourceCluster])
				}
			}
			return sources
		}
		for _, c := range set.Clusters() {
			if got := ready(c); len(got) != 2 {
				t.Errorf("behind %s in %s are endpoints of %v", backend.Name, c.Name, got)
			}
			derived, err := c.Kube.CoreV1().Services(sim.Namespace).Get(t.Context(), backend.Name, metav1.GetOptions{})
			must(t, err)
			if derived.Spec.Ports[0].Port != backend.Port.Number || derived.Spec.Type != corev1.ServiceTypeClusterIP || len(derived.Annotations) > 0 {
				t.Errorf("%s in %s: %v", backend.Name, c.Name, derived)
			}
			if filter.Matches(labels.Set(derived.Labels)) || !filter.Matches(labels.Set(exported.Labels)) {
				t.Errorf("%s selects the wrong Services: labels %v and %v", filter, derived.Labels, exported.Labels)
			}
		}
		west := set.Cluster("west")
		west.SetEndpoints(exported.Name)
		sim.Wait(10 * time.Second)
		if got := ready(west); len(got) != 1 || got[0] != "east" {
			t.Errorf("without a pod of west, behind %s are endpoints of %v", backend.Name, got)
		}
	})
}

// must ends the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

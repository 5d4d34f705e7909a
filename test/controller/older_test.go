// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/placement"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/scenario"
)

// TestOlderAPIServer imports from a newer cluster what the API server does not know, as those before 1.34 do not: it
// refuses values of trafficDistribution and drops hints for nodes. What is known is not asked for again.
func TestOlderAPIServer(t *testing.T) {
	plane := controlplanetest.Start(t, controlplane.Options{
		Name: "old", Zones: []string{},
		APIServerArgs: []string{"--emulated-version=1.34", "--feature-gates=PreferSameTrafficDistribution=false"},
	})[0]
	scenario.Scenario{Clusters: []string{"east", "old"}, Run: func(s *scenario.Set) {
		east, old := s.Cluster("east"), s.Cluster("old")
		want := map[string]string{
			"node-1": "east=east-a -", "node-2": "east=east-a -",
			"zone-1": "east=east-a PreferClose", "zone-2": "east=east-a PreferClose",
			"both": "east=elsewhere PreferClose True Hinted",
		}
		for service := range want {
			distribution, fields := "PreferSameNode", "nodeName: east-0, zone: east-a, "
			if service[:4] == "zone" {
				distribution, fields = "PreferSameZone", "zone: east-a, "
			}
			east.PutService(service, "{ports: [{name: http, port: 80}], trafficDistribution: "+distribution+"}")
			east.PutEndpoints(service, fields, "10.64.0.10")
			east.PutExport(service, "{}")
		}
		east.Prefer("both", placement.PreferCluster)
		east.ExpectHints("node-1", "east=east-a PreferSameNode")
		look := func() {
			t.Helper()
			for service, hints := range want {
				old.ExpectHints(service, hints)
				s.Expect(scenario.View{service: "east/10.64.0.10 -> VIP"}, old)
			}
			s.Quiet(old)
		}
		look()
		s.Eventually("Events", func() error {
			events, err := old.Kube.CoreV1().Events(s.Namespace()).List(t.Context(),
				metav1.ListOptions{FieldSelector: "reason=" + apply.EventUnsupported})
			if err == nil && len(events.Items) != 3 {
				err = fmt.Errorf("%d events: %v", len(events.Items), events.Items)
			}
			return err
		})
		asksNoMore(s, old, look)
	}}.On(t, &realBed{last: plane})
}

// asksNoMore asserts that looking at everything again writes no Service and no
// slice, and that a restart ends in the same.
func asksNoMore(s *scenario.Set, c *scenario.Cluster, look func()) {
	s.Helper()
	before := c.Written("services", "endpointslices")
	for i := range 2 {
		c.PutNode("new", fmt.Sprintf("zone-%d", i)) // everything is looked at
		look()
	}
	if after := c.Written("services", "endpointslices"); after != before {
		s.Errorf("looking again wrote:\nbefore %s\nafter  %s", before, after)
	}
	c.Restart()
	look()
}

// dropping makes the API server drop the trafficDistribution of derived
// Services, as one does that does not know the field.
const dropping = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [services]}]
  matchConditions:
  - name: derived
    expression: object.metadata.namespace == '%[1]s' && object.metadata.name.startsWith('derived-') && has(object.spec.trafficDistribution)
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: "[JSONPatch{op: 'remove', path: '/spec/trafficDistribution'}]"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s}
`

// TestDroppedTrafficDistribution: an API server that drops the field is not
// asked again in each pass. The policy is of a namespace that is used once.
func TestDroppedTrafficDistribution(t *testing.T) {
	scenario.Scenario{Clusters: []string{"east"}, Run: func(s *scenario.Set) {
		east := s.Cluster("east")
		east.Put(fmt.Sprintf(dropping, s.Namespace()))
		s.Eventually("the field is dropped", func() error {
			probe := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Name: "derived-probe"},
				Spec: corev1.ServiceSpec{
					Ports:               []corev1.ServicePort{{Port: 80}},
					TrafficDistribution: ptr.To(corev1.ServiceTrafficDistributionPreferClose),
				},
			}
			made, err := east.Kube.CoreV1().Services(s.Namespace()).Create(t.Context(), probe,
				metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err == nil && made.Spec.TrafficDistribution != nil {
				err = fmt.Errorf("it is %s", *made.Spec.TrafficDistribution)
			}
			return err
		})
		for _, service := range []string{"one", "two"} {
			east.PutService(service, "{ports: [{name: http, port: 80}], trafficDistribution: PreferSameZone}")
			east.PutEndpoints(service, "zone: east-a, ", "10.64.0.10")
			east.PutExport(service, "{}")
		}
		look := func() {
			t.Helper()
			for _, service := range []string{"one", "two"} {
				east.ExpectHints(service, "east=east-a -")
			}
			s.Quiet(east)
		}
		look()
		asksNoMore(s, east, look)
	}}.On(t, &realBed{})
}

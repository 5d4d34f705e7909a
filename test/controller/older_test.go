// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/apply"
	"github.com/clusterset-dns/clusterset-dns/controller/locality"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

const (
	zoneFirst = "{ports: [{name: http, port: 80}], trafficDistribution: PreferSameZone}"
	nodeFirst = "{ports: [{name: http, port: 80}], trafficDistribution: PreferSameNode}"
)

// TestOlderAPIServer imports from a newer cluster what the API server does not
// know, as those before 1.34 do not: it refuses values of trafficDistribution and
// drops hints for nodes.
func TestOlderAPIServer(t *testing.T) {
	t.Parallel()
	east, _ := bed(t)
	old := newCluster(t, controlplanetest.Start(t, controlplane.Options{Name: "old", APIServerArgs: []string{"--emulated-version=1.34", "--feature-gates=PreferSameTrafficDistribution=false"}})[0])
	old.join(t, east)
	east.start(t)
	stop := old.start(t)
	demo := namespace(t, east, old)
	onNode := strings.NewReplacer("zone:", "nodeName: east-0, zone:")
	for _, name := range []string{"node-1", "node-2"} {
		east.create(t, demo, onNode.Replace(inZone(nodeFirst, name, "10.64.0.10", "east-a"))+serviceExport(name))
	}
	for _, name := range []string{"zone-1", "zone-2"} {
		east.create(t, demo, inZone(zoneFirst, name, "10.64.0.11", "east-a")+serviceExport(name))
	}
	east.create(t, demo, onNode.Replace(inZone(nodeFirst, "both", "10.64.0.12", "east-a"))+preferring("both", locality.PreferCluster))
	expectHints(t, east, key(demo, "node-1"), "east=east-a PreferSameNode")
	look := func() {
		t.Helper()
		for name, want := range map[string]string{
			"node-1": "east=east-a -", "node-2": "east=east-a -",
			"zone-1": "east=east-a PreferClose", "zone-2": "east=east-a PreferClose",
			"both": "east=elsewhere PreferClose True Hinted",
		} {
			expectHints(t, old, key(demo, name), want)
			expect(t, key(demo, name), "ClusterSetIP of east Ready [east/"+map[string]string{"node": "10.64.0.10", "zone": "10.64.0.11", "both": "10.64.0.12"}[name[:4]]+"]", old)
		}
		quiet(t, old)
	}
	look()
	eventually(t, "what is told", func(ctx context.Context) error {
		events, err := old.CoreV1().Events(demo).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + apply.EventUnsupported})
		if err == nil && len(events.Items) != 3 {
			err = fmt.Errorf("%d events: %v", len(events.Items), events.Items)
		}
		return err
	})

	// What is known is not asked for again, however often a service is looked at.
	before := old.written.to("services", "endpointslices")
	for i := range 2 {
		old.putNode(t, "old-new", fmt.Sprintf("zone-%d", i))
		look()
	}
	if after := old.written.to("services", "endpointslices"); after != before {
		t.Errorf("looking again wrote:\nbefore %s\nafter  %s", before, after)
	}
	stop()
	old.start(t)
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
// asked again in each pass.
func TestDroppedTrafficDistribution(t *testing.T) {
	t.Parallel()
	east, _ := bed(t)
	stop := east.start(t)
	demo := namespace(t, east)
	t.Cleanup(func() {
		policies := east.AdmissionregistrationV1()
		must(t, policies.MutatingAdmissionPolicyBindings().Delete(context.Background(), demo, metav1.DeleteOptions{}))
		must(t, policies.MutatingAdmissionPolicies().Delete(context.Background(), demo, metav1.DeleteOptions{}))
	})
	east.create(t, demo, fmt.Sprintf(dropping, demo))
	eventually(t, "the field is dropped", func(ctx context.Context) error {
		probe := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "derived-probe"},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, TrafficDistribution: ptr.To(corev1.ServiceTrafficDistributionPreferClose)},
		}
		made, err := east.CoreV1().Services(demo).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && made.Spec.TrafficDistribution != nil {
			err = fmt.Errorf("it is %s", *made.Spec.TrafficDistribution)
		}
		return err
	})
	for _, name := range []string{"one", "two"} {
		east.create(t, demo, inZone(zoneFirst, name, "10.64.0.10", "east-a")+serviceExport(name))
	}
	look := func() {
		t.Helper()
		for _, name := range []string{"one", "two"} {
			expectHints(t, east, key(demo, name), "east=east-a -")
		}
		quiet(t, east)
	}
	look()
	before := east.written.to("services", "endpointslices")
	east.putNode(t, "east-new", "east-c") // everything is looked at
	look()
	if after := east.written.to("services", "endpointslices"); after != before {
		t.Errorf("looking again wrote:\nbefore %s\nafter  %s", before, after)
	}
	stop()
	east.start(t)
	look()
}

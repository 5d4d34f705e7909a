// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
	"sigs.k8s.io/yaml"
)

// TestDecode: an object that the schema accepts and the Go type does not is cached without what does not decode. The schema
// of today accepts the time, and older ones accept the ports. The scenario "a time does not decode" lists and watches it.
func TestDecode(t *testing.T) {
	const (
		goodTime, badTime = "2026-01-01T00:00:00Z", "2026-01-01t00:00:00Z"
		goodSpec, badSpec = `{"type":"ClusterSetIP","ips":["192.0.2.1"],"ports":[{"port":80}]}`, `{"type":"ClusterSetIP","ports":"http"}`
	)
	for name, test := range map[string]struct{ spec, time, want string }{
		"a good one":           {goodSpec, goodTime, "web@9 [192.0.2.1] 1"},
		"a time in its status": {goodSpec, badTime, "web@9 [192.0.2.1] 0"},
		"its spec":             {badSpec, goodTime, "web@9 [] 0"},
		"both":                 {badSpec, badTime, "web@9 [] 0"},
	} {
		read := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(`{metadata: {name: web, resourceVersion: "9", managedFields: [{manager: x}]}, spec: `+test.spec+
			`, status: {conditions: [{type: Ready, status: "True", lastTransitionTime: "`+test.time+`"}]}}`), &read.Object))
		object, err := decode[v1beta1.ServiceImport](read)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		is := object.(*v1beta1.ServiceImport)
		got := fmt.Sprintf("%s@%s %v %d", is.Name, is.ResourceVersion, is.Spec.IPs, len(is.Status.Conditions))
		if again, err := decode[v1beta1.ServiceImport](is); got != test.want || is.ManagedFields != nil || again != object || err != nil {
			t.Errorf("%s: got %s, and decoded again %v, %v; want %s", name, got, again, err, test.want)
		}
	}
}

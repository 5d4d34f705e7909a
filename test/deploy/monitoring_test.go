// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const monitoring = root + "/deploy/chart/files/monitoring/"

// TestMonitoringObjects compares the rule and the dashboard with their files.
func TestMonitoringObjects(t *testing.T) {
	found := map[string]map[string]any{}
	for _, object := range objects(t, template(t, "--set", "metrics.prometheusRule.enabled=true,"+
		"metrics.dashboard.enabled=true,metrics.dashboard.namespace=grafana")) {
		found[object.GetKind()+" "+object.GetName()] = object.Object
	}
	if difference := cmp.Diff(any(parse(t, read(t, monitoring+"alerts.yaml"))),
		found["PrometheusRule clusterset-dns"]["spec"]); difference != "" {
		t.Error(difference)
	}
	dashboard := unstructured.Unstructured{Object: found["ConfigMap clusterset-dns-dashboard"]}
	text, _, _ := unstructured.NestedString(dashboard.Object, "data", "clusterset-dns.json")
	if text != read(t, monitoring+"dashboard.json") || dashboard.GetNamespace() != "grafana" ||
		dashboard.GetLabels()["grafana_dashboard"] != "1" {
		t.Errorf("dashboard %v", dashboard.Object)
	}
}

func parse(t *testing.T, text string) map[string]any {
	parsed := map[string]any{}
	must(t, yaml.Unmarshal([]byte(text), &parsed))
	return parsed
}

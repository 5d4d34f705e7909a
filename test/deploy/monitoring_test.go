// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const monitoring = root + "/deploy/chart/files/monitoring/"

// TestMonitoringUsesMetricsThatExist reads the expressions of the alerts, of their tests and of the dashboard, and holds
// them against the pages, which TestReference and the test of the plugin hold against the code.
func TestMonitoringUsesMetricsThatExist(t *testing.T) {
	used := map[string]bool{} // whether it exists
	pages := read(t, root+"/docs/reference/metrics.md") + read(t, root+"/plugin/multicluster/README.md")
	const metric = `(?:clusterset_controller|coredns_multicluster)_[a-z_]+`
	for _, row := range regexp.MustCompile("(?m)^[-*] `("+metric+")").FindAllStringSubmatch(pages, -1) {
		used[row[1]] = false
	}
	for _, file := range []string{"alerts.yaml", "alerts_test.yaml", "dashboard.json"} {
		for _, name := range regexp.MustCompile(`\b`+metric).FindAllString(read(t, monitoring+file), -1) {
			base := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
			if _, known := used[base]; !known {
				t.Errorf("%s names %s, which the pages do not have", file, name)
			}
			used[base] = true
		}
	}
	for name, is := range used {
		if !is {
			t.Errorf("neither an alert nor the dashboard uses %s", name)
		}
	}
	if len(used) < 20 {
		t.Errorf("only %v", used)
	}
}

// TestOnePageForADeadMember: the example for Alertmanager groups and inhibits by alerts and a label that exist.
func TestOnePageForADeadMember(t *testing.T) {
	example := documented(t, "operate/failures.md", "route:")
	if _, ok := parse(t, example)["inhibit_rules"].([]any); !ok {
		t.Errorf("the example inhibits nothing:\n%s", example)
	}
	_, alerts, _ := strings.Cut(read(t, monitoring+"alerts.yaml"), "- alert: ")
	summaries := map[string]string{}
	for _, alert := range strings.Split(alerts, "- alert: ") {
		name, text, _ := strings.Cut(alert, "\n")
		summaries[name] = regexp.MustCompile(`summary: .*`).FindString(text)
	}
	named := regexp.MustCompile(`ClusterSet[A-Z]\w+`).FindAllString(example, -1)
	for _, name := range named {
		if !strings.Contains(summaries[name], "$labels.member") {
			t.Errorf("%s is no alert with the label member: %q", name, summaries[name])
		}
	}
	if len(named) < 3 {
		t.Errorf("the example has the alerts %v", named)
	}
}

// TestMonitoringObjects holds the rule and the dashboard against their files.
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

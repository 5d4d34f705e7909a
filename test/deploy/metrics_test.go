// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/controller"
	_ "github.com/clusterset-dns/clusterset-dns/plugin/multicluster" // Its metrics.
)

const monitoring = root + "/deploy/chart/files/monitoring/"

// metricName matches what both programs call their metrics.
var metricName = regexp.MustCompile(`\b(clusterset_controller|coredns_multicluster)_[a-z_]+`)

// defined are the metrics of both programs with their labels, in the code's order.
func defined(t testing.TB) map[string]string {
	t.Helper()
	registry := prometheus.NewRegistry()
	if _, err := controller.New(
		controller.Options{Config: &rest.Config{Host: "https://192.0.2.1"}, Registry: registry}); err != nil {
		t.Fatal(err)
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		registry.Describe(descriptions)
		prometheus.DefaultRegisterer.(*prometheus.Registry).Describe(descriptions)
	}()
	parts := regexp.MustCompile(
		`^Desc\{fqName: "([^"]*)", help: ".*", constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)
	metrics := map[string]string{}
	for each := range descriptions {
		match := parts.FindStringSubmatch(each.String())
		if match != nil && metricName.MatchString(match[1]) {
			metrics[match[1]] = strings.ReplaceAll(match[2], ",", ", ")
		}
	}
	if len(metrics) < 20 {
		t.Fatalf("only %v", metrics)
	}
	return metrics
}

// TestMetricsAreDocumented holds docs/reference/metrics.md against the code: names and labels of the controller's
// metrics. The plugin has a manual and a test of its own.
func TestMetricsAreDocumented(t *testing.T) {
	want := defined(t)
	maps.DeleteFunc(want, func(name, _ string) bool { return strings.HasPrefix(name, "coredns_multicluster_") })
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z]+) \\| ([^|]*)\\|").FindAllStringSubmatch(
		read(t, root+"/docs/reference/metrics.md"), -1) {
		name, kind, labels := row[1], row[2], strings.ReplaceAll(strings.TrimSpace(row[3]), "`", "")
		wantLabels, ok := want[name]
		switch {
		case !ok:
			t.Errorf("the code has no metric %s", name)
		case labels != wantLabels:
			t.Errorf("%s has the labels %s in the code, and %s in the document", name, wantLabels, labels)
		case !slices.Contains([]string{"gauge", "counter", "histogram"}, kind),
			(kind == "counter") != strings.HasSuffix(name, "_total"):
			t.Errorf("%s is no %s", name, kind)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("docs/reference/metrics.md lacks %s, or has it twice", name)
	}
}

// TestMonitoringUsesMetricsThatExist reads the expressions of the alerts, of their tests and of the dashboard.
func TestMonitoringUsesMetricsThatExist(t *testing.T) {
	known := defined(t)
	used := map[string]bool{}
	for _, file := range []string{"alerts.yaml", "alerts_test.yaml", "dashboard.json"} {
		names := metricName.FindAllString(read(t, monitoring+file), -1)
		if len(names) == 0 {
			t.Errorf("%s names no metric", file)
		}
		for _, name := range names {
			base := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
			if _, ok := known[base]; !ok {
				t.Errorf("%s names %s, which the code does not have", file, name)
			}
			used[base] = true
		}
	}
	for name := range known {
		if !used[name] {
			t.Errorf("neither an alert nor the dashboard uses %s", name)
		}
	}
}

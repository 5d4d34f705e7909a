// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/controller"
	_ "github.com/clusterset-dns/clusterset-dns/plugin/multicluster" // Its metrics.
)

const monitoring = root + "/deploy/chart/files/monitoring/"

// metricName matches what both programs call their metrics.
var metricName = regexp.MustCompile(`\b(clusterset_controller|coredns_multicluster)_[a-z_]+`)

// defined are the metrics of both programs.
func defined(t testing.TB) map[string]bool {
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
	name := regexp.MustCompile(`^Desc\{fqName: "([^"]*)"`)
	metrics := map[string]bool{}
	for each := range descriptions {
		if match := name.FindStringSubmatch(each.String()); match != nil && metricName.MatchString(match[1]) {
			metrics[match[1]] = true
		}
	}
	if len(metrics) < 20 {
		t.Fatalf("only %v", metrics)
	}
	return metrics
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
			if !known[base] {
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

// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestMetricsAreInTheManual holds the table of docs/reference/metrics.md against the code.
func TestMetricsAreInTheManual(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := New(registry, "v1")
	if err != nil {
		t.Fatal(err)
	}
	descriptions := make(chan *prometheus.Desc, 100)
	for _, collector := range []prometheus.Collector{m.reconciles, m.propagation, m.repeated, m} {
		collector.Describe(descriptions)
	}
	close(descriptions)
	var names []string
	description := regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)"`)
	for each := range descriptions {
		match := description.FindStringSubmatch(each.String())
		if match == nil || match[2] == "" {
			t.Fatalf("no name or no help: %s", each)
		}
		names = append(names, match[1])
	}
	manual, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(clusterset_controller_[a-z_]*)`").FindAllStringSubmatch(
		string(manual), -1) {
		documented = append(documented, match[1])
	}
	slices.Sort(names)
	slices.Sort(documented)
	if !slices.Equal(names, documented) {
		t.Errorf("the code has\n%s\nthe manual has\n%s", strings.Join(names, "\n"), strings.Join(documented, "\n"))
	}
}

func TestMetricsOfAStandby(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := New(registry, "v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(registry, "v1"); err == nil {
		t.Error("two controllers share a registry")
	}
	m.Reconciled(time.Second, nil)
	m.Reconciled(time.Second, errors.New("no"))
	m.propagated(originRemote, -time.Minute) // their clock is ahead
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	var names []string
	for _, family := range families {
		names = append(names, family.GetName())
		if family.GetName() == prefix+"leader" && family.GetMetric()[0].GetGauge().GetValue() != 0 {
			t.Error("a standby leads")
		}
	}
	want := []string{
		prefix + "build_info", prefix + "leader", prefix + "propagation_duration_seconds",
		prefix + "reconcile_duration_seconds",
	}
	if !slices.Equal(names, want) {
		t.Errorf("a standby has %v, want %v", names, want)
	}
}

func TestProblemCounts(t *testing.T) {
	var counts problemCounts
	web, db := types.NamespacedName{Name: "web"}, types.NamespacedName{Name: "db"}
	bad := export.Problem{Reason: export.ReasonBadAddress}
	counts.set(web, map[string][]export.Problem{"east": {bad, bad}, "west": {bad}})
	counts.set(db, map[string][]export.Problem{"east": {bad}})
	key := problemKey{"east", export.ReasonBadAddress}
	if got := counts.count()[key]; got != 2 {
		t.Errorf("got %d services, want 2", got)
	}
	counts.set(web, nil)
	counts.set(db, map[string][]export.Problem{"east": nil})
	if got := counts.count(); len(got) != 0 || len(counts.services) != 0 {
		t.Errorf("got %v, want none", got)
	}
	counts.set(db, map[string][]export.Problem{"east": {bad}})
	counts.clear()
	counts.set(web, map[string][]export.Problem{"east": {bad}})
	if got := counts.count(); len(got) != 1 || got[key] != 1 {
		t.Errorf("got %v after another term began, want one service", got)
	}
}

// TestMetricsAreReadFromTheBeginning reads the registry while the metrics are registered, as the server of metrics may.
func TestMetricsAreReadFromTheBeginning(t *testing.T) {
	registry := prometheus.NewRegistry()
	done := make(chan error, 1)
	go func() {
		_, err := New(registry, "v1")
		done <- err
	}()
	for found := false; !found; {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if found = family.GetName() == prefix+"build_info"; found {
				break
			}
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package statusz

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

func TestMetricsOfAStandby(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewServer(registry, "v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewServer(registry, "v1"); err == nil {
		t.Error("two controllers share a registry")
	}
	m.Reconciled(time.Second, nil)
	m.Reconciled(time.Second, errors.New("no"))
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
		prefix + "build_info", prefix + "leader", prefix + "reconcile_duration_seconds",
	}
	if !slices.Equal(names, want) {
		t.Errorf("a standby has %v, want %v", names, want)
	}
}

// TestCountedObjects: an object counts for each condition and each of its reasons. Objects of other owners do not count.
func TestCountedObjects(t *testing.T) {
	conditions := func(reasons ...string) (all []metav1.Condition) {
		for _, reason := range reasons {
			all = append(all, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: reason})
		}
		return all
	}
	ours := &v1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{export.LabelManagedBy: export.Manager}},
		Spec:       v1beta1.ServiceImportSpec{Type: v1beta1.Headless},
		Status:     v1beta1.ServiceImportStatus{Conditions: conditions("A,B")},
	}
	theirs := &v1beta1.ServiceImport{Status: v1beta1.ServiceImportStatus{Conditions: conditions("A")}}
	exported := &v1beta1.ServiceExport{Status: v1beta1.ServiceExportStatus{Conditions: conditions("A", "C")}}
	var got []string
	countConditions([]*v1beta1.ServiceExport{exported}, []*v1beta1.ServiceImport{ours, theirs},
		func(name string, value float64, labels ...string) {
			got = append(got, fmt.Sprintf("%s%v %g", name, labels, value))
		})
	slices.Sort(got)
	want := []string{
		"conditions[ServiceExport Ready True A] 1", "conditions[ServiceExport Ready True C] 1",
		"conditions[ServiceImport Ready True A] 1", "conditions[ServiceImport Ready True B] 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

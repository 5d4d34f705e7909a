// SPDX-License-Identifier: Apache-2.0

package mcsapi

import (
	"fmt"
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestCounts: each object counts as it was last seen, and the next handler sees it, too.
func TestCounts(t *testing.T) {
	var access Access
	seen := ""
	handler := access.counts.counted(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(_ any, first bool) { seen += fmt.Sprintf("add %t ", first) },
		UpdateFunc: func(_, _ any) { seen += "update " },
		DeleteFunc: func(any) { seen += "delete " },
	})
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
	unreadable := &v1beta1.ServiceExport{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{markUnreadable: "no"}},
	}
	imports, exports := Fact{Kind: v1beta1.ServiceImportKindName}, Fact{Kind: v1beta1.ServiceExportKindName}
	ready := func(kind Fact, reason string) Fact {
		kind.Condition, kind.Status, kind.Reason = "Ready", "True", reason
		return kind
	}
	headless, bad := imports, exports
	headless.Managed, headless.Type = true, v1beta1.Headless
	bad.Unreadable = true
	expect := func(step string, want map[Fact]int) {
		t.Helper()
		if got := access.Counts(); !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", step, got, want)
		}
	}
	expect("nothing", nil)
	handler.OnAdd(ours, true)
	handler.OnAdd(theirs, false)
	handler.OnAdd(exported, false)
	handler.OnAdd(unreadable, false)
	expect("all", map[Fact]int{
		imports: 2, headless: 1, ready(imports, "A"): 1, ready(imports, "B"): 1,
		exports: 2, bad: 1, ready(exports, "A"): 1, ready(exports, "C"): 1,
	})
	handler.OnUpdate(unreadable, exported)
	handler.OnDelete(ours)
	expect("one is corrected, one is gone", map[Fact]int{
		imports: 1, exports: 2, ready(exports, "A"): 2, ready(exports, "C"): 2,
	})
	if want := "add true add false add false add false update delete "; seen != want {
		t.Errorf("the handler saw %q, want %q", seen, want)
	}
}

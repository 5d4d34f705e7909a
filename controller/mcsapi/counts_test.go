// SPDX-License-Identifier: Apache-2.0

package mcsapi

import (
	"maps"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// TestCounts: each object counts as it is cached.
func TestCounts(t *testing.T) {
	access, err := newAccess(&rest.Config{}, http.DefaultClient, &informer.FreshnessGate{}, "", "v1beta1")
	if err != nil {
		t.Fatal(err)
	}
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
	put := func(in *informer.Informer, name string, object metav1.Object) {
		object.SetName(name)
		if err := in.Indexer().Update(object); err != nil {
			t.Fatal(err)
		}
	}
	expect("nothing", nil)
	put(access.imports, "ours", ours)
	put(access.imports, "theirs", theirs)
	put(access.exports, "exported", exported)
	put(access.exports, "unreadable", unreadable)
	expect("all", map[Fact]int{
		imports: 2, headless: 1, ready(imports, "A"): 1, ready(imports, "B"): 1,
		exports: 2, bad: 1, ready(exports, "A"): 1, ready(exports, "C"): 1,
	})
}

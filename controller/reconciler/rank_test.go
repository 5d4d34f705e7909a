// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestRankOfTheLocalCluster: the namespace of the controller ranks the local cluster. A change is a reason to look at
// what it exports.
func TestRankOfTheLocalCluster(t *testing.T) {
	r := newTestReconciler()
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "demo", Name: "web-east",
		Labels: map[string]string{
			export.LabelService: "web", export.LabelSourceCluster: "east", export.LabelSliceManagedBy: export.Manager,
		},
	}}
	if err := r.Local.EndpointSlices.Indexer().Add(export.Pack(slice)); err != nil {
		t.Fatal(err)
	}
	ranked := func(name string, rank ...string) *corev1.Namespace {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, text := range rank {
			namespace.Annotations = map[string]string{member.RankAnnotation: text}
		}
		return namespace
	}
	handler := r.namespaceHandler()
	check := func(what string, looked bool) {
		t.Helper()
		if got := r.queue.Len() > 0; got != looked {
			t.Errorf("%s: looked at again: %t", what, got)
		}
		for r.queue.Len() > 0 {
			service, _ := r.queue.Get()
			r.queue.Done(service)
		}
	}
	handler.OnAdd(ranked("clusterset-dns", "x"), false)
	check("not valid from the start", false)
	handler.OnAdd(ranked("demo", "x"), false)
	check("another namespace", true)
	handler.OnUpdate(ranked("clusterset-dns", "x"), ranked("clusterset-dns", "y"))
	check("not valid still", false)
	handler.OnUpdate(ranked("clusterset-dns", "y"), ranked("clusterset-dns", "2"))
	check("valid", true)
	handler.OnUpdate(ranked("clusterset-dns", "2"), ranked("clusterset-dns", "2"))
	check("the same", false)
	handler.OnUpdate(ranked("clusterset-dns", "2"), ranked("clusterset-dns", "z"))
	check("not valid any more", true)
	handler.OnUpdate(ranked("clusterset-dns", "0"), ranked("clusterset-dns"))
	check("none", false)
	handler.OnUpdate(ranked("demo", "2"), ranked("demo", "3"))
	check("another namespace changes", false)

	for text, want := range map[string]int{"3": 3, "-3": -3, "x": member.LastRank} {
		if got := Standing(ranked("clusterset-dns", text)); got.Rank != want {
			t.Errorf("rank %q: got %d", text, got.Rank)
		}
	}
	if Standing(nil).Rank != 0 || Standing(ranked("clusterset-dns")).Rank != 0 {
		t.Error("a rank comes of nothing")
	}
}

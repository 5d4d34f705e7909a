// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
)

// TestLargeServicesTakeTurns: while a large service is reconciled, another one waits, and a small one does not.
func TestLargeServicesTakeTurns(t *testing.T) {
	r := newTestReconciler(record.NewFakeRecorder(9))
	defer r.ShutDown()
	for name, size := range map[string]int{"large": large, "small": 1} {
		if err := r.Local.EndpointSlices.Indexer().Add(&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: name, Annotations: map[string]string{"a": strings.Repeat("x", size)},
			Labels: map[string]string{export.LabelService: name, export.LabelSliceManagedBy: export.Manager},
		}}); err != nil {
			t.Fatal(err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	pass := func(name string) error {
		return r.inTurn(ended, types.NamespacedName{Namespace: "demo", Name: name}, func() error { return nil })
	}
	r.turn <- struct{}{}
	for name, want := range map[string]error{"large": context.Canceled, "small": nil, "none": nil} {
		if err := pass(name); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	<-r.turn
	for range 2 { // the first ends its turn
		if err := r.inTurn(t.Context(), types.NamespacedName{Namespace: "demo", Name: "large"},
			func() error { return nil }); err != nil {
			t.Error(err)
		}
	}
}

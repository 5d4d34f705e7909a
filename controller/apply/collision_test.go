// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/merge"
)

// TestDerivedServiceOfAnotherStays: the names of two services' derived Services
// may be equal. A service that is not exported removes its own and no other.
func TestDerivedServiceOfAnotherStays(t *testing.T) {
	service := types.NamespacedName{Namespace: "demo", Name: "s-k1qtda5r7c"}
	for label, gone := range map[string]bool{service.Name: true, "s-g9sgelsm7d": false, "names-nobody": true} {
		derived := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: export.DerivedServiceName(service), UID: "1", ResourceVersion: "1",
			Labels: map[string]string{export.LabelManagedBy: export.Manager, export.LabelService: label},
		}}
		client := fake.NewClientset(derived)
		applier := &Applier{Core: client, Recorder: record.NewFakeRecorder(1), Clock: &clocktesting.FakePassiveClock{}}
		existing := Existing{Observed: merge.Observed{Cluster: "east", Service: service, DerivedService: derived}}
		_, err := applier.ApplyService(t.Context(), nil, existing, merge.Result{})
		if err != nil {
			t.Fatal(err)
		}
		left, err := client.CoreV1().Services(service.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || (len(left.Items) == 0) != gone {
			t.Errorf("labelled with %s: there are %v, %v", label, left.Items, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// TestALabelOfAWebhook: the label that a webhook adds to each Lease causes no writes.
func TestALabelOfAWebhook(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("*", "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if writes, ok := action.(clienttesting.CreateAction); ok { // updates, too
			writes.GetObject().(*coordinationv1.Lease).Labels["team"] = "network"
		}
		return false, nil, nil
	})
	l := newLookout(t, nil, "west")
	_, err := l.Recall(t.Context(), client.CoordinationV1(), "system")
	for range 10 {
		err = errors.Join(err, l.writeLeases(t.Context()))
		l.now.Step(time.Second)
	}
	if count := len(client.Actions()); err != nil || count > 4 { // list, list, create, and list again
		t.Errorf("%d requests, %v", count, err)
	}
}

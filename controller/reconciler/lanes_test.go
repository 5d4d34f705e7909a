// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestClustersTakeTurns: what changes in one cluster waits for one service of each other, however many are due.
func TestClustersTakeTurns(t *testing.T) {
	q := newQueue("east", writerOf{})
	defer q.ShutDown()
	named := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "demo", Name: name} }
	for i := range 1000 {
		q.AddFrom("west", named(fmt.Sprint("west-", i)))
	}
	q.AddFrom("north", named("north-0"))
	q.AddFrom("north", named("north-1"))
	q.AddFrom("east", named("own"))
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "south-1"}}
	q.AddSlice(named("south"), "south", slice, slice)
	q.AddFrom("north", named("west-1")) // it keeps its place
	if q.Len() != 1004 {
		t.Errorf("%d services are due", q.Len())
	}
	for _, want := range []string{"west-0", "north-0", "own", "south", "west-1", "north-1", "west-2", "west-3"} {
		if got, _, _ := q.Get(); got.Name != want {
			t.Errorf("got %s, want %s", got.Name, want)
		}
	}
	for range 996 {
		q.Get()
	}
	if q.Len() != 0 {
		t.Errorf("%d services are left", q.Len())
	}
}

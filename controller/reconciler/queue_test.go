// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// writerOf wrote one object.
type writerOf struct{ object metav1.Object }

func (w writerOf) Echo(_ types.NamespacedName, shown metav1.Object) bool { return shown == w.object }

func (w writerOf) CaughtUp(types.NamespacedName) bool { return true }

// TestEchoesCauseNoPass: a service is skipped only if nothing but echoes of own writes made it due.
func TestEchoesCauseNoPass(t *testing.T) {
	web, db := types.NamespacedName{Namespace: "demo", Name: "web"}, types.NamespacedName{Namespace: "demo", Name: "db"}
	own, other := &metav1.ObjectMeta{Name: "own"}, &metav1.ObjectMeta{Name: "other"}
	for name, test := range map[string]struct {
		add  func(*queue)
		want bool
	}{
		"an echo":                     {func(q *queue) { q.AddShown(web, own) }, false},
		"two echoes":                  {func(q *queue) { q.AddShown(web, own); q.AddShown(web, own) }, false},
		"another object":              {func(q *queue) { q.AddShown(web, own); q.AddShown(web, other) }, true},
		"it is due before":            {func(q *queue) { q.Add(web); q.AddShown(web, own) }, true},
		"it is due as well":           {func(q *queue) { q.AddShown(web, own); q.Add(web) }, true},
		"it failed, and is due later": {func(q *queue) { q.AddRateLimited(web); q.AddShown(web, own) }, true},
		"it is held back":             {func(q *queue) { q.AddAfter(web, 1); q.AddShown(web, own) }, true},
	} {
		q := newQueue(writerOf{own})
		test.add(q)
		q.Add(db)
		want := db
		if test.want {
			want = web
		}
		if got, _ := q.Get(); got != want {
			t.Errorf("%s: got %v", name, got)
		}
		q.ShutDown()
	}
}

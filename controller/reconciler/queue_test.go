// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// pass lets virtual time pass.
func pass(duration time.Duration) {
	<-time.After(duration)
}

// TestServicesRest: the first change is due at once, later ones after a rest, together, and what a pass makes due at once.
func TestServicesRest(t *testing.T) {
	web := types.NamespacedName{Namespace: "demo", Name: "web"}
	for name, test := range map[string]struct {
		took time.Duration
		add  func(*queue)
		want time.Duration
	}{
		"a first change":     {-1, func(q *queue) { q.Add(web) }, 0},
		"a short pass":       {time.Millisecond, func(q *queue) { q.Add(web) }, 100 * time.Millisecond},
		"a long pass":        {time.Second / 5, func(q *queue) { q.Add(web); q.Add(web) }, 4 * time.Second / 5},
		"a pass that waited": {time.Minute, func(q *queue) { q.Add(web) }, time.Second},
		"what it wrote":      {time.Second, func(q *queue) { q.AddNow(web) }, 0},
		"a retry":            {time.Second, func(q *queue) { q.Retry(web) }, 0},
		"a failure":          {time.Millisecond, func(q *queue) { q.AddRateLimited(web) }, 100 * time.Millisecond},
		"a change long ago":  {time.Second, func(q *queue) { pass(time.Hour); q.Add(web) }, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue()
				defer q.ShutDown()
				if test.took >= 0 {
					q.Rest(web, test.took)
				}
				begin := time.Now()
				test.add(q)
				service, shutdown := q.Get()
				if waited := time.Since(begin); service != web || shutdown || waited < test.want || waited > test.want+50*time.Millisecond {
					t.Errorf("got %s after %s, want it after %s", service, waited, test.want)
				}
				q.Done(service)
				if pass(time.Minute); q.Len() > 0 {
					t.Error("it is due twice")
				}
			})
		})
	}
}

// TestRestsEnd: what is kept of services that no longer change is bounded.
func TestRestsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		defer q.ShutDown()
		for i := range 10_000 {
			q.Rest(types.NamespacedName{Name: string(rune('a'+i%26)) + time.Duration(i).String()}, 0)
			pass(time.Millisecond)
		}
		if len(q.rests) > 1100 {
			t.Errorf("%d services rest", len(q.rests))
		}
	})
}

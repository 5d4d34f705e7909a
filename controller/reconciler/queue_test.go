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

// TestServicesRest: the first change is due at once, and later ones after a rest, together.
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
		"another writer":     {time.Millisecond, func(q *queue) { q.AddLimited(web) }, 100 * time.Millisecond},
		"a failure":          {time.Millisecond, func(q *queue) { q.AddRateLimited(web) }, 100 * time.Millisecond},
		"a change long ago":  {time.Second, func(q *queue) { pass(time.Hour); q.Add(web) }, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue()
				defer q.ShutDown()
				if test.took >= 0 {
					q.Add(web)
					q.Get()
					q.Rest(web, restAfter(test.took))
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

// TestWritersFight: another writer reverts each change at once. The first ones are corrected after a rest, later ones
// after limitedDelay. Changes of exports are written without this delay.
func TestWritersFight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		web, q := types.NamespacedName{Namespace: "demo", Name: "web"}, newQueue()
		defer q.ShutDown()
		passes, slowest := 0, time.Duration(0)
		next := func() time.Duration {
			begin := time.Now()
			q.Get()
			passes++
			q.Rest(web, restAfter(time.Millisecond))
			return time.Since(begin)
		}
		for begin := time.Now(); time.Since(begin) < time.Hour; {
			for range 3 { // objects
				q.AddLimited(web)
			}
			took := next()
			if slowest = max(slowest, took); passes <= limitedAtOnce && took > restAtLeast {
				t.Fatalf("pass %d waited for %s", passes, took)
			}
		}
		if passes < 1000 || passes > 1400 || slowest != limitedDelay {
			t.Errorf("%d passes in an hour, which waited for %s at most", passes, slowest)
		}
		q.AddLimited(web)
		q.Add(web)
		if took := next(); took > restAtLeast {
			t.Errorf("a change of an export waited for %s", took)
		}
		if pass(limitedWindow); q.Len() > 0 {
			next()
		}
		q.AddLimited(web)
		if took := next(); took > restAtLeast {
			t.Errorf("after the fight, a correction waited for %s", took)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAHandlerIsReplaced replaces the handler while the informer runs. Each handler receives the events of its time, and
// none for objects that the cache had before.
func TestAHandlerIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.put("old")
		i := New(&FreshnessGate{}, s, Options{Resource: "test", Example: &corev1.ConfigMap{}})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		running.Go(func() { i.Run(ctx) })
		<-i.Synced()
		told := map[string]string{}
		handler := func(name string) Handler {
			return func(before, after metav1.Object) {
				if before == nil {
					told[name] += "+" + after.GetName()
				} else {
					told[name] += "-" + before.GetName()
				}
			}
		}
		put := func(names string) {
			s.put(strings.Fields(names)...)
			synctest.Wait()
		}
		put("old first")
		i.Handle(handler("one"))
		put("old first second")
		i.Handle(func(_, _ metav1.Object) {})
		put("first third")
		i.Handle(handler("two"))
		put("third")
		if told["one"] != "+second" || told["two"] != "-first" {
			t.Errorf("told %q", told)
		}
		if got := i.Indexer().ListKeys(); !slices.Equal(got, []string{"third"}) {
			t.Errorf("the cache has %q", got)
		}
	})
}

// TestWaitForAll waits for longer than a reconcile does.
func TestWaitForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		if !p.group.WaitForAll(t.Context()) {
			t.Error("it waits for informers that are not behind")
		}
		p.slices.fail(syscall.ECONNREFUSED)
		<-time.After(2 * longest)
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*longest)
		defer cancel()
		if p.group.WaitForAll(ctx) || time.Since(begin) != 2*longest {
			t.Errorf("it returned after %s, and nothing was read again", time.Since(begin))
		}
		p.slices.put("new")
		p.slices.fail(nil)
		if !p.group.WaitForAll(t.Context()) || known(p.informers[1]) != "new" {
			t.Errorf("it returned while the cache had %s", known(p.informers[1]))
		}
	})
}

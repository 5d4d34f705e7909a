// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAHandlerIsReplaced replaces the handler while the informer runs. Each handler receives the events while it is set, and
// none for objects that were in the cache before.
func TestAHandlerIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
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
		put := func(names ...string) {
			p.slices.put(names...)
			synctest.Wait()
		}
		put("old", "first")
		p.informers[1].Handle(handler("one"))
		put("old", "first", "second")
		p.informers[1].Handle(func(_, _ metav1.Object) {})
		put("first", "third")
		p.informers[1].Handle(handler("two"))
		put("third")
		if told["one"] != "+second" || told["two"] != "-first" || known(p.informers[1]) != "third" {
			t.Errorf("told %q, and the cache has %q", told, known(p.informers[1]))
		}
	})
}

// TestWaitForAll: it waits longer than Wait does.
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

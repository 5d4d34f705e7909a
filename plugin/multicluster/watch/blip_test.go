// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// One attempt of each watch is refused, as by an API server behind a load balancer that restarts. The next attempts
// continue the watches and list nothing.
func TestAChangeAfterABlipOfTheAPIServerIsAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.free = func() {}
		x := b.Index()
		ctx, cancel := context.WithCancel(t.Context())
		b.running.Go(func() { b.publishAll(ctx) })
		defer b.running.Wait()
		defer cancel()
		both := func(err error) {
			b.asked(b.imports.scope, false, err)
			b.asked(b.slices.scope, false, err)
		}
		both(nil)
		put(t, b.imports.Replace([]any{importOf("db", mcsv1beta1.Headless)}, "1"))
		put(t, b.slices.Replace([]any{sliceOf("a", "db", "east", "10.1.0.1")}, "1"))
		synctest.Wait()
		both(errors.New("connection refused"))
		<-time.After(200 * time.Millisecond)
		both(nil)
		<-time.After(10 * time.Second)
		put(t, b.slices.Update(sliceOf("a", "db", "east", "10.1.0.2")))
		b.slices.UpdateResourceVersion("2")
		synctest.Wait()
		if got := reply(x, "db"); got != "10.1.0.2" {
			t.Errorf("the answer is %q, want 10.1.0.2", got)
		}
	})
}

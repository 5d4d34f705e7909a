// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

func TestAServiceIsPublishedAtOnceAndThenTenTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, Options{})
		b.now = time.Now
		x := b.Index()
		address := func(i int) string { return fmt.Sprintf("10.42.%d.%d", i/256, i%256) }
		go b.publishAll(t.Context())
		expect := func(when, service, want string) {
			t.Helper()
			synctest.Wait()
			if got := reply(x, service); got != want {
				t.Errorf("%s %s is answered with %q, want %q", when, service, got, want)
			}
		}
		change := func(service, ip string) { put(t, b.imports.Update(importOf(service, mcsv1beta1.ClusterSetIP, ip))) }
		change("web", address(0))
		b.list()
		expect("listed,", "web", address(0))
		<-time.After(time.Second)

		change("web", address(1))
		expect("after the first change", "web", address(1))
		published := x.State()
		publications := 0
		for i := 2; i <= 1000; i++ {
			<-time.After(time.Millisecond)
			change("web", address(i))
			synctest.Wait()
			if now := x.State(); now != published {
				published = now
				publications++
			}
		}
		if publications < 9 || publications > 10 {
			t.Errorf("a service that changes each millisecond was published %d times in a second", publications)
		}
		<-time.After(pause)
		expect("after the pause", "web", address(1000))
		change("web", address(1001))
		change("other", "10.42.0.2")
		expect("while another waits", "other", "10.42.0.2")

		change("web", address(2000))
		put(t, b.imports.Delete(importOf("web", mcsv1beta1.ClusterSetIP)))
		expect("deleted", "web", "")
	})
}

// SPDX-License-Identifier: Apache-2.0

package memberstate

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// BenchmarkHeartbeat is the heartbeat of one of so many members, each of which sends one in an interval: the judgement,
// and the look at the Leases that follows.
func BenchmarkHeartbeat(b *testing.B) {
	for _, members := range []int{10, 100, 510} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			clusters := make([]string, members)
			for i := range clusters {
				clusters[i] = fmt.Sprintf("cluster-%03d", i)
			}
			klog.SetLogger(logr.Discard())
			defer klog.ClearLogger()
			l := newLookout(b, nil, clusters...)
			leases, err := NewLeases(b.Context(), fake.NewClientset(), "system", l.Tracker)
			if err != nil {
				b.Fatal(err)
			}
			beat := func(i int) {
				l.now.Step(member.HeartbeatInterval / time.Duration(members))
				l.LeaseRead(clusters[i%members], "uid", l.now.Now(), true, false)
			}
			for i := range members {
				beat(i)
			}
			if err := leases.write(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				beat(i)
				i++
				if err := leases.write(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

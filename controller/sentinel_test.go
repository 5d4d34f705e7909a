// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterset-dns/clusterset-dns/controller/liveness"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestMembersAreAskedForUnderTheLock: what joins while somebody else's change
// is handled is in the list, or is added after it was used.
func TestMembersAreAskedForUnderTheLock(t *testing.T) {
	s := newSentinel(Options{}.limits(), clocktesting.NewFakeClock(time.Unix(1e9, 0)))
	s.tell = func(_, _ liveness.Judgement) {}
	s.members["west"] = &watched{Member: liveness.Member{Cluster: "west"}}
	asked := 0
	s.remain(func() []*member.Member {
		asked++
		if s.mu.TryLock() {
			s.mu.Unlock()
			t.Error("a member may join between the look at the members and its use")
		}
		return nil
	})
	if asked != 1 || len(s.members) != 0 {
		t.Errorf("asked %d times, and %d members remain", asked, len(s.members))
	}
}

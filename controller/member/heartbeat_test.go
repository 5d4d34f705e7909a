// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/clusterset-dns/clusterset-dns/controller/scope"
)

// TestTextsOfAHeartbeat: a UID would be a part of a command that an administrator copies, and long texts are cut.
func TestTextsOfAHeartbeat(t *testing.T) {
	const uid = "0b1e3a52-6f5e-4a3c-9d7c-4f0c8f5a1c11"
	m := (&surroundings{}).west()
	for i, test := range []struct{ text, uid string }{
		{uid, uid}, {"x'; rm -rf /; '", ""}, {"a\nb", ""}, {strings.Repeat("a", 65), ""}, {strings.Repeat("x", 5000), ""}, {"", ""},
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(i), Annotations: map[string]string{
			HeartbeatUIDAnnotation: test.text, HeartbeatCanariesAnnotation: test.text, HeartbeatVersionAnnotation: test.text,
			scope.PropertiesAnnotation: test.text,
		}}}
		m.hear(lease)
		is, length := m.Heartbeat(), len(test.text)
		if is.KubeSystemUID != test.uid || len(is.Canaries) != min(length, maxCanariesText) || len(is.Version) != min(length, maxWord) ||
			len(is.Properties) != min(length, scope.MaxBytes+1) || !strings.HasPrefix(test.text, is.Canaries) {
			t.Errorf("%.50q: got %+v", test.text, is)
		}
	}
}

// TestRenewals: what was read first may be old, and a restored etcd has an older Lease than it had.
func TestRenewals(t *testing.T) {
	start := time.Unix(1e9, 0)
	clock := clocktesting.NewFakeClock(start)
	renewed, heard := false, time.Time{}
	around := &surroundings{}
	m := around.member(Config{Clock: clock}, &Candidate{Cluster: "west"})
	around.heard = func(_ Heartbeat, is bool) {
		if renewed = is; m.mu.TryLock() {
			m.mu.Unlock()
			t.Error("an older heartbeat may be told later")
		}
	}
	for i, test := range []struct {
		version string
		renewed bool
	}{{"7", false}, {"8", true}, {"8", false}, {"10", true}, {"3", false}, {"4", true}, {"x", true}} {
		clock.SetTime(start.Add(time.Duration(i) * time.Second))
		if test.renewed {
			heard = clock.Now()
		}
		m.hear(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: test.version, UID: types.UID(test.version)}})
		if is := m.Heartbeat(); renewed != test.renewed || is.Heard != heard || is.LeaseUID != test.version {
			t.Errorf("version %s: renewed %v, heard %s, want %v, %s", test.version, renewed, is.Heard, test.renewed, heard)
		}
	}
}

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

// TestTextsOfAHeartbeat: unusual UIDs are dropped, because administrators copy them in a command. Long texts are cut.
func TestTextsOfAHeartbeat(t *testing.T) {
	const uid = "0b1e3a52-6f5e-4a3c-9d7c-4f0c8f5a1c11"
	var is Heartbeat
	m := (&surroundings{heard: func(read Heartbeat, _ bool) { is = read }}).west()
	for i, test := range []struct{ text, uid string }{
		{uid, uid}, {"x'; rm -rf /; '", ""}, {"a\nb", ""}, {strings.Repeat("a", 65), ""}, {strings.Repeat("x", 5000), ""}, {"", ""},
	} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: fmt.Sprint(i), Annotations: map[string]string{
			HeartbeatUIDAnnotation: test.text, HeartbeatTargetsAnnotation: test.text, HeartbeatVersionAnnotation: test.text,
			scope.PropertiesAnnotation: test.text,
		}}}
		m.hear(lease, true)
		length := len(test.text)
		if is.KubeSystemUID != test.uid || len(is.Targets) != min(length, maxTargetsText) || len(is.Version) != min(length, maxWord) ||
			len(is.Properties) != min(length, scope.MaxBytes+1) || !strings.HasPrefix(test.text, is.Targets) {
			t.Errorf("%.50q: got %+v", test.text, is)
		}
	}
}

// TestRenewals: the first Lease read is no renewal, as it may be old, and neither is an older Lease from a restored etcd.
func TestRenewals(t *testing.T) {
	renewed, read := false, Heartbeat{}
	around := &surroundings{}
	m := around.west()
	around.heard = func(is Heartbeat, again bool) {
		if read, renewed = is, again; m.mu.TryLock() {
			m.mu.Unlock()
			t.Error("an older heartbeat may be told later")
		}
	}
	now := clocktesting.NewFakeClock(time.Now())
	m.set.config.Clock = now
	for _, test := range []struct {
		version string
		renewed bool
		after   time.Duration
		watched bool
	}{
		{"7", false, 0, false},
		{"8", true, 0, false},
		{"8", false, 0, false},
		{"10", true, 0, false},
		{"3", false, 0, false},
		{"4", true, 29 * time.Second, false},
		{"x", true, 0, true},
		{"11", false, 30 * time.Second, false},
		{"12", true, 30 * time.Second, true}, // what is listed after an absence may be old
	} {
		now.Step(test.after)
		m.hear(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: test.version, UID: types.UID(test.version)}}, !test.watched)
		if renewed != test.renewed || read.LeaseUID != test.version {
			t.Errorf("version %s: renewed %v with UID %s, want %v", test.version, renewed, read.LeaseUID, test.renewed)
		}
	}
}

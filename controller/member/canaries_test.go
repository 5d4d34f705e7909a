// SPDX-License-Identifier: Apache-2.0

package member

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// TestCanaries: those of the last renewal count, unless a controller renewed it that does not know them.
func TestCanaries(t *testing.T) {
	renewed := time.Unix(1e9, 0)
	m := &Member{heartbeat: &heartbeat{clock: clocktesting.NewFakePassiveClock(renewed)}}
	if text, read := m.Canaries(); text != "" || read {
		t.Errorf("before a heartbeat: %q, %t", text, read)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}
	for _, step := range []struct {
		what, text, want string
	}{
		{"the first one", "10.1.0.1:8081=a", "10.1.0.1:8081=a"},
		{"another", "10.1.0.2:8081", "10.1.0.2:8081"},
		{"a newer one", "10.1.0.3:8081", "10.1.0.3:8081"},
		{"none", "", ""},
		{"too many", strings.Repeat("x", 5000), strings.Repeat("x", maxCanariesText)},
	} {
		renewed = renewed.Add(HeartbeatInterval)
		lease = lease.DeepCopy()
		lease.ResourceVersion += "1"
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(renewed))
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, HeartbeatCanariesAnnotation, step.text)
		if err := m.heartbeat.Update(lease); err != nil {
			t.Fatal(err)
		}
		if text, read := m.Canaries(); text != step.want || !read {
			t.Errorf("%s: got %.50q, %t, want %.50q", step.what, text, read, step.want)
		}
	}
}

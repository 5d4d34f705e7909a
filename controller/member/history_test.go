// SPDX-License-Identifier: Apache-2.0

package member

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestHistory follows heartbeats over restarts of their controller and a restored etcd.
func TestHistory(t *testing.T) {
	first := History(nil).Begin("a")
	second := first.Next()
	backup := second
	lost := second.Next()
	failover := lost.Begin("b").Next()
	restored := backup.Begin("c").Next().Next()
	for name, test := range map[string]struct {
		now, before History
		want        bool
	}{
		"the same":                         {second, second, true},
		"the next":                         {second, first, true},
		"the one before":                   {first, second, false},
		"after a failover":                 {failover, lost, true},
		"the same, after a failover":       {failover, failover, true},
		"the backup":                       {backup, lost, false},
		"what was not lost":                {restored, backup, true},
		"what was lost":                    {restored, lost, false},
		"what was lost after the failover": {restored, failover, false},
		"no history now":                   {nil, first, false},
		"no history before":                {first, nil, false},
	} {
		if got := test.now.Includes(test.before); got != test.want {
			t.Errorf("%s: %q includes %q: %t", name, test.now, test.before, got)
		}
	}
	long := first
	for range 40 {
		long = long.Begin("12345678")
	}
	if len(long) != maxSeries || long.Includes(first) || len(long.String()) > maxHistoryText {
		t.Errorf("%d series: %q", len(long), long)
	}
}

func TestHistoryOf(t *testing.T) {
	for text, want := range map[string]string{
		"a:7":      "a:7",
		"b:1,a:7":  "b:1,a:7",
		"":         "",
		"a":        "",
		":7":       "",
		"b:1,a:-7": "",
		"a:7,":     "",
		strings.Repeat("a", maxHistoryText) + ":7": "",
	} {
		renewed := metav1.NewMicroTime(time.Unix(1.7e9, 123456000))
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
				HeartbeatHistoryAnnotation: fmt.Sprintf("%s@%d", text, renewed.UnixMicro()),
			}},
			Spec: coordinationv1.LeaseSpec{RenewTime: &renewed},
		}
		got := HistoryOf(lease)
		if got.String() != want {
			t.Errorf("%.20q: got %q, want %q", text, got, want)
		}
		if want != "" {
			SetHistory(lease, got.Next())
			if HistoryOf(lease).String() != got.Next().String() {
				t.Errorf("%.20q: got %q after the next renewal", text, HistoryOf(lease))
			}
		}
		later := metav1.NewMicroTime(renewed.Add(time.Microsecond))
		if lease.Spec.RenewTime = &later; HistoryOf(lease) != nil {
			t.Errorf("%.20q: a renewal without a history has %q", text, HistoryOf(lease))
		}
		if lease.Spec.RenewTime = nil; HistoryOf(lease) != nil {
			t.Errorf("%.20q: a Lease without a renewal has %q", text, HistoryOf(lease))
		}
	}
}

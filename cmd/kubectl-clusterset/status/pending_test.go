// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestPending breaks a set of two clusters in one place after the other.
func TestPending(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for want, change := range map[string]func(*Status){
		"":                                     func(*Status) {},
		"east: unreachable: refused":           func(s *Status) { *s = Unreached("east", errors.New("refused")) },
		"east: no heartbeat":                   func(s *Status) { s.Heartbeat = nil },
		"east: the last heartbeat is 1m0s old": func(s *Status) { s.now = now.Add(time.Minute) },
		"east: west is not a member":           func(s *Status) { s.Members = nil },
		"east: member west is stale":           func(s *Status) { s.Members[0].State = "stale" },
		"east: 2 services of member west are not up to date": func(s *Status) { s.Members[0].Behind = ptr.To(2) },
		"east: import shop/db is not ready (Pending): no IP": func(s *Status) {
			s.Imports[0].Reason, s.Imports[0].Message = "Pending", "no IP"
		},
		"east: import shop/db is not ready (Unknown)": func(s *Status) { s.Imports[0].Reason = "Unknown" },
	} {
		of := func(context, other string) Status {
			return Status{
				Context: context, Cluster: context, Heartbeat: &metav1.Time{Time: now}, now: now,
				// What may not be read is not waited for.
				Members: []Member{{Cluster: other, State: "fresh", Behind: ptr.To(0)}, {Cluster: "north", State: "fresh"}},
				Imports: []Import{
					{Namespace: "shop", Name: "db", Reason: "Ready"}, {Namespace: "shop", Name: "else", Reason: "Foreign"},
				},
			}
		}
		all := []Status{of("east", "west"), of("west", "east")}
		change(&all[0])
		got := Pending(all)
		if want == "" && len(got) > 0 || want != "" && !slices.Equal(got, []string{want}) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

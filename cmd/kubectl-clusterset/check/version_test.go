// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestControllerVersion compares the controllers of east and west, of which
// west has no context of its own in half of the cases.
func TestControllerVersion(t *testing.T) {
	const (
		none    = "skipped The controller does not report a release version."
		members = "skipped The controllers of the members do not report a release version."
	)
	for _, test := range []struct{ version, other, want string }{
		{"v0.1.0", "v0.1.9", "ok "},
		{"v0.1.4", "v0.2.0", "ok "},
		{"v0.3.0", "v0.1.4", "ok "}, // the older one is told
		{"v0.1.4", "0.3.0-5-g0123456-dirty", "warning The controller has version 0.1.4 and that of west has 0.3.0-5-g0123456-dirty, but clusters may differ by one minor version only."},
		{"v0.9.0", "v1.0.0", "warning The controller has version 0.9.0 and that of west has 1.0.0, but clusters may differ by one minor version only."},
		{"", "v0.3.0", none},
		{"unknown", "v0.3.0", none},
		{"0123456", "v0.3.0", none},
		{"v0.0.0-20261123020000-0123456789ab", "v0.3.0", none},
		{"v0.1.0", "", members},
		{"v0.1.0", "0123456-dirty", members},
	} {
		for _, contexts := range []int{1, 2} {
			set := newSet(func(east, west *Cluster) {
				east.Heartbeat.Annotations = map[string]string{member.HeartbeatVersionAnnotation: test.version}
				west.Heartbeat.Annotations = map[string]string{member.HeartbeatVersionAnnotation: test.other}
				east.Members[0].Heartbeat = west.Heartbeat
			})
			set.Clusters = set.Clusters[:contexts]
			for _, finding := range Run(set) {
				if finding.Check != "controller-version" || finding.Context != "east" {
					continue
				}
				if got := finding.Result + " " + finding.What + finding.Reason; got != test.want {
					t.Errorf("%q, and %q with %d contexts: got %q, want %q", test.version, test.other, contexts, got, test.want)
				}
			}
		}
	}
}

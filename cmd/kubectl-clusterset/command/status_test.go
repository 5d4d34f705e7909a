// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// ready is a cluster of two in which nothing is pending.
func ready() clusterStatus {
	return clusterStatus{Context: "e", Cluster: &state.Cluster{
		Cluster: "east", Now: now, MCSVersion: "v1beta1",
		Members: []state.Member{{Cluster: "west", State: "fresh", Path: "reachable", Synced: true, Heard: now.Add(-time.Second)}},
		Imports: []state.Import{{Namespace: "shop", Name: "web", Reason: "Ready"}, {Namespace: "old", Name: "db", Reason: state.Foreign}},
	}}
}

func TestPending(t *testing.T) {
	for want, change := range map[string]func(*clusterStatus){
		"":                                     func(*clusterStatus) {},
		"e: it does not know this question":    func(s *clusterStatus) { s.Cluster, s.Unknown = nil, "it does not know this question" },
		"e: the heartbeat has stopped: writes": func(s *clusterStatus) { s.HeartbeatStopped = "writes" },
		"e: the heartbeat has stopped: ServiceExports cannot be read": func(s *clusterStatus) {
			s.HeartbeatStopped, s.InputsLate = "inputs", "ServiceExports"
		},
		"e: member west is stale (Silent)":     func(s *clusterStatus) { s.Members[0].State, s.Members[0].Reason = "stale", "Silent" },
		"e: member west has not been read yet": func(s *clusterStatus) { s.Members[0].Synced = false },
		"e: 2 services are being reconciled":   func(s *clusterStatus) { s.Queue = 2 },
		"e: import shop/web is not ready (Pending): no IP yet": func(s *clusterStatus) {
			s.Imports[0].Reason, s.Imports[0].Message = "Pending", "no IP yet"
		},
	} {
		status := ready()
		change(&status)
		if got := strings.Join(pendingOf([]clusterStatus{status}), "; "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	north := ready()
	north.Context, north.Cluster.Cluster = "n", "north"
	if got := pendingOf([]clusterStatus{ready(), north}); len(got) != 2 || got[0] != "e: north is not a member" {
		t.Errorf("got %q", got)
	}
}

// TestText has how a member is read in wide output, and tells a member whose pods are not reached from a silent one.
func TestText(t *testing.T) {
	status := ready()
	m := &status.Members[0]
	m.State, m.Path, m.Server, m.ServerName = "stale", "unreachable", "https://west.example:6443", "kubernetes"
	m.Expires, status.Findings = now.Add(-time.Hour), []state.Finding{{What: "The credential of west expired."}}
	var text strings.Builder
	if err := status.Text(&text, true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"stale,unreachable", "https://west.example:6443   kubernetes", "expired", "shop/web", "! The credential of west expired.",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

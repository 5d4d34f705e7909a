// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// controllerOf answers each request with a document, and returns the address.
func controllerOf(t *testing.T, document any) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(document) }))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// TestContextsInFixes: an id that several clusters have is that of the cluster itself, or of the first one. A fix works in the namespace of the controller.
func TestContextsInFixes(t *testing.T) {
	var clusters []*cluster.Cluster
	for _, is := range [][2]string{{"e", "east"}, {"e2", "east"}, {"w", "west"}} {
		clusters = append(clusters, &cluster.Cluster{Context: is[0], Namespace: "mcs", Controller: controllerOf(t, state.Cluster{
			Version: state.Version, Cluster: is[1], Findings: []state.Finding{{Fix: "Run `kubectl clusterset join <context of east> <context of west> <context of north>`."}},
		})})
	}
	for _, status := range Statuses(t.Context(), clusters) {
		want := map[string]string{"e": "e w", "e2": "e2 w", "w": "e w"}[status.Context]
		want = "Run `kubectl clusterset --system-namespace mcs join " + want + " <context of north>`."
		if status.Err != nil || status.Findings[0].Fix != want {
			t.Errorf("%s: got %+v, want %q", status.Context, status, want)
		}
	}
}

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// ready is a cluster of two in which nothing is pending.
func ready() Status {
	return Status{Context: "e", Cluster: &state.Cluster{
		Cluster: "east", Now: now, MCSVersion: "v1beta1",
		Members: []state.Member{{Cluster: "west", State: "fresh", Path: "reachable", Synced: true, LastHeartbeat: now.Add(-time.Second)}},
		Imports: []state.Import{{Namespace: "shop", Name: "web", Reason: "Ready"}, {Namespace: "old", Name: "db", Reason: state.Foreign}},
	}}
}

func TestPending(t *testing.T) {
	for want, change := range map[string]func(*Status){
		"":                                      func(*Status) {},
		"e: it does not know this question":     func(s *Status) { s.Cluster, s.Unknown = nil, "it does not know this question" },
		"e: the heartbeat has stopped: writes":  func(s *Status) { s.HeartbeatStopped = "writes" },
		"e: member west is stale (NoHeartbeat)": func(s *Status) { s.Members[0].State, s.Members[0].Reason = "stale", "NoHeartbeat" },
		"e: member west has not been read, or no heartbeat arrived yet": func(s *Status) { s.Members[0].Synced = false },
		"e: 2 services are being reconciled":                            func(s *Status) { s.Queue = 2 },
		"e: import shop/web is not ready (Pending): no IP yet": func(s *Status) {
			s.Imports[0].Reason, s.Imports[0].Message = "Pending", "no IP yet"
		},
	} {
		status := ready()
		change(&status)
		if got := strings.Join(Pending([]Status{status}), "; "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	north := ready()
	north.Context, north.Cluster.Cluster = "n", "north"
	if got := Pending([]Status{ready(), north}); len(got) != 2 || got[0] != "e: north is not a member" {
		t.Errorf("got %q", got)
	}
}

// TestStatus tells a member whose pods are unreachable from one without a heartbeat.
func TestStatus(t *testing.T) {
	status := ready()
	m := &status.Members[0]
	m.State, m.Path = "stale", "unreachable"
	status.Findings = []state.Finding{{What: "The credential of west expired."}}
	var text strings.Builder
	status.Text(&text)
	for _, want := range []string{"stale,unreachable", "shop/web", "! The credential of west expired."} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// newController answers the questions about a cluster, and returns its address. It explains every service as not
// imported.
func newController(t *testing.T, is state.Cluster) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc(state.PathStatus, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(is) })
	mux.HandleFunc(state.PathExplain, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(state.Explanation{
			Version: is.Version, Service: r.URL.Query().Get("service"), Cluster: is.Cluster, Exports: []state.Export{},
			Properties: []state.Property{}, Conditions: []metav1.Condition{}, Endpoints: []state.Endpoint{}, DNS: []string{},
			Problems: []state.Finding{},
		})
	})
	return serve(t, mux.ServeHTTP)
}

// serve answers as a controller, and returns the address.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// imports is a cluster with imports in a state.
func imports(reason string, names ...string) state.Cluster {
	is := state.Cluster{
		Version: state.Version, Cluster: "east", Members: []state.Member{}, Imports: []state.Import{}, Findings: []state.Finding{},
	}
	for _, each := range names {
		namespace, name, _ := strings.Cut(each, "/")
		is.Imports = append(is.Imports, state.Import{
			Namespace: namespace, Name: name, Clusters: []string{}, Reason: reason, Message: "no IP yet",
		})
	}
	return is
}

// TestWrongControllerIsNotGuessed: a controller of another version does not know the question.
func TestWrongControllerIsNotGuessed(t *testing.T) {
	server := newAPI(t, nil, nil)
	other := imports("Ready", "shop/db")
	other.Version = "v0"
	for name, address := range map[string]string{
		"an old one": serve(t, http.NotFound), "another version of the documents": newController(t, other),
	} {
		for _, line := range []string{"status", "explain shop/db"} {
			out, _, err := invoke(t, server.URL, append(strings.Fields(line), "--controller", address)...)
			if exitStatus(err) != exitFailed || !strings.Contains(out+err.Error(), "does not know the question") ||
				strings.Contains(out, "no IP yet") {
				t.Errorf("%s: %s: %v\n%s", name, line, err, out)
			}
		}
	}
}

// TestStatusAsksOneQuestion of the controller of a cluster with 100 members, and none of the API server. It asks again while no
// replica leads, as for some seconds after an upgrade.
func TestStatusAsksOneQuestion(t *testing.T) {
	server, asked, is := newAPI(t, nil, nil), 0, imports("Ready", "shop/db")
	for i := range 100 {
		is.Members = append(is.Members, state.Member{Cluster: fmt.Sprintf("member-%d", i), State: "fresh"})
	}
	controller := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(is)
	})
	out, _, err := invoke(t, server.URL, "status", "--controller", controller)
	if err != nil || asked != 2 || len(server.seen()) > 0 || !strings.Contains(out, "shop/db") || !strings.Contains(out, "member-99") {
		t.Errorf("asked %d times, and %v: %v\n%s", asked, server.seen(), err, out)
	}
}

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
		"e: member west is stale (Silent)":     func(s *clusterStatus) { s.Members[0].State, s.Members[0].Reason = "stale", "Silent" },
		"e: member west has not been read or heard yet": func(s *clusterStatus) { s.Members[0].Synced = false },
		"e: 2 services are being reconciled":            func(s *clusterStatus) { s.Queue = 2 },
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

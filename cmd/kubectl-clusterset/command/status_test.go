// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// newController starts the controller of a cluster, and returns its address. It explains every service as not imported.
func newController(t *testing.T, is state.Cluster) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc(state.PathStatus, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(is) })
	mux.HandleFunc(state.PathExplain, func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(state.Explanation{
			Version: is.Version, Service: r.URL.Query().Get("service"), Cluster: is.Cluster, Exports: []state.Export{},
			Conditions: []metav1.Condition{}, Endpoints: []state.Endpoint{}, DNS: []string{}, Problems: []state.Finding{},
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

// TestWrongControllerIsNotGuessed: a controller of another version is an error.
func TestWrongControllerIsNotGuessed(t *testing.T) {
	server := newAPI(t, nil)
	other := imports("Ready", "shop/db")
	other.Version = "v0"
	for name, address := range map[string]string{
		"an old one": serve(t, http.NotFound), "another version of the documents": newController(t, other),
	} {
		for _, line := range []string{"status", "explain shop/db"} {
			out, _, err := invoke(t, server.URL, append(strings.Fields(line), "--controller", "east="+address)...)
			if !failed(err) || !strings.Contains(out+err.Error(), "does not know the question") ||
				strings.Contains(out, "no IP yet") {
				t.Errorf("%s: %s: %v\n%s", name, line, err, out)
			}
		}
	}
}

// TestStatusAsksOneQuestion of the controller of a cluster with 100 members, and none of the API server. It asks again while no
// replica leads, as for some seconds after an upgrade.
func TestStatusAsksOneQuestion(t *testing.T) {
	server, asked, is := newAPI(t, nil), 0, imports("Ready", "shop/db")
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
	out, _, err := invoke(t, server.URL, "status", "--controller", "east="+controller)
	if err != nil || asked != 2 || len(server.seen()) > 0 || !strings.Contains(out, "shop/db") || !strings.Contains(out, "member-99") {
		t.Errorf("asked %d times, and %v: %v\n%s", asked, server.seen(), err, out)
	}
}

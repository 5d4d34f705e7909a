// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"
)

// An api is an API server that answers the requests of every command that reads the set, and those in answers, others with 404.
type api struct {
	*httptest.Server
	answers map[string]string // by method and path; an empty one is 403

	mu       sync.Mutex
	requests []*http.Request
}

func newAPI(t *testing.T, answers map[string]string) *api {
	t.Helper()
	a := &api{answers: map[string]string{
		"GET /version": `{"gitVersion":"v1.36.1"}`,
		"GET /apis/multicluster.x-k8s.io/v1beta1": `{"kind":"APIResourceList","groupVersion":"multicluster.x-k8s.io/v1beta1"}`,
	}}
	maps.Copy(a.answers, answers)
	a.Server = httptest.NewTLSServer(a) // clients send no tokens otherwise
	t.Cleanup(a.Close)
	return a
}

func (a *api) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, request)
	w.Header().Set("Content-Type", "application/json")
	body, known := a.answers[request.Method+" "+request.URL.Path]
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no",`
	switch {
	case !known:
		w.WriteHeader(http.StatusNotFound)
		body = status + `"reason":"NotFound","code":404}`
	case body == "":
		w.WriteHeader(http.StatusForbidden)
		body = status + `"reason":"Forbidden","code":403}`
	}
	fmt.Fprint(w, body)
}

// seen are the methods and paths of all requests.
func (a *api) seen() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var seen []string
	for _, request := range a.requests {
		seen = append(seen, request.Method+" "+request.URL.Path)
	}
	return seen
}

// invoke runs a command line with a kubeconfig that has the contexts east and west, which are at one server.
func invoke(t *testing.T, server string, args ...string) (out, progress string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	err = execute(t.Context(), &options{Out: &stdout, ErrOut: &stderr}, append(args, "--kubeconfig", writeKubeconfig(t, server)))
	return stdout.String(), stderr.String(), err
}

// failed reports whether a command failed with the exit status 1.
func failed(err error) bool { return err != nil && !errors.Is(err, errWrong) }

// writeKubeconfig has the contexts east, which is the current one, and west.
func writeKubeconfig(t *testing.T, server string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: east,
clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: {token: of-the-kubeconfig}}],
contexts: [{name: east, context: {cluster: c, user: u}}, {name: west, context: {cluster: c, user: u}}]}`, server)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFlagsOfKubectlAreHonored looks at what arrives at the API server.
func TestFlagsOfKubectlAreHonored(t *testing.T) {
	for flags, want := range map[string]map[string]string{
		"":                         {"Authorization": "Bearer of-the-kubeconfig", "Impersonate-User": ""},
		"--as jane --as-group dev": {"Impersonate-User": "jane", "Impersonate-Group": "dev"},
	} {
		server := newAPI(t, nil)
		if _, _, err := invoke(t, server.URL, append([]string{"unexport", "shop/db"}, strings.Fields(flags)...)...); err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		for header, value := range want {
			if got := server.requests[0].Header.Get(header); got != value {
				t.Errorf("%s: %s is %q", flags, header, got)
			}
		}
	}
}

// TestOutputForProgramsSaysWhatItIs: it always has apiVersion and kind, and empty lists instead of null.
func TestOutputForProgramsSaysWhatItIs(t *testing.T) {
	server, controller := newAPI(t, nil), newController(t, imports("Ready", "shop/db"))
	for line, want := range map[string]struct{ kind, server string }{
		"status": {"Status", server.URL},
		"explain shop/db --controller east=" + controller: {"ExplanationList", server.URL},
		"check": {"CheckReport", server.URL},
		// Unreachable.
		"status --context west": {"Status", "http://127.0.0.1:1"},
		"check --context west":  {"CheckReport", "http://127.0.0.1:1"},
	} {
		for _, format := range []string{"json", "yaml"} {
			out, _, err := invoke(t, want.server, append(strings.Fields(line), "-o", format)...)
			var fields map[string]any
			if failed := yaml.Unmarshal([]byte(out), &fields); failed != nil || json.Valid([]byte(out)) != (format == "json") ||
				fields["apiVersion"] != "cli.clusterset-dns.github.io/v1beta1" || fields["kind"] != want.kind ||
				strings.Contains(out, ": null") {
				t.Errorf("%s -o %s: %v, %v:\n%s", line, format, failed, err, out)
			}
		}
	}
}

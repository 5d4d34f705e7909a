// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/clusterset-dns/clusterset-dns/controller/informer"
)

// An importText is a ServiceImport as an API server may have it: the schema of
// today accepts the time, and older schemas accept the ports.
func importText(name, version, spec, time string) string {
	return fmt.Sprintf(`{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImport",`+
		`"metadata":{"namespace":"demo","name":%q,"uid":"uid-%s","resourceVersion":%q},`+
		`"spec":%s,"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`, name, name,
		version, spec, time)
}

const (
	goodTime = "2026-01-01T00:00:00Z"
	badTime  = "2026-01-01t00:00:00Z"
	goodSpec = `{"type":"ClusterSetIP","ips":["192.0.2.1"],"ports":[{"port":80}]}`
	badSpec  = `{"type":"ClusterSetIP","ports":"http"}`
)

// imports is an API server that lists some imports and then sends others as events of the watch.
func imports(t *testing.T, listed, watched []string) *Access {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "true" {
			// the client may hang up
			_, _ = io.WriteString(w, `{"apiVersion":"multicluster.x-k8s.io/v1beta1","kind":"ServiceImportList","metadata":{"resourceVersion":"10"},"items":[`+strings.Join(listed, ",")+`]}`)
			return
		}
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
			return
		}
		for _, each := range watched {
			_, _ = io.WriteString(w, `{"type":"MODIFIED","object":`+each+"}\n")
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	access, err := newAccess(&rest.Config{Host: server.URL}, http.DefaultClient, &informer.FreshnessGate{}, "v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	return access
}

func describe(object *v1beta1.ServiceImport) string {
	return fmt.Sprintf("%s@%s %v %d", object.Name, object.ResourceVersion, object.Spec.IPs, len(object.Status.Conditions))
}

// TestOneBadObjectHarmsNoOther: objects that the schema accepts and the Go types do not.
func TestOneBadObjectHarmsNoOther(t *testing.T) {
	for name, test := range map[string]struct {
		spec, time, want string
	}{
		"a good one":           {goodSpec, goodTime, "bad@9 [192.0.2.1] 1"},
		"a time in its status": {goodSpec, badTime, "bad@9 [192.0.2.1] 0"},
		"its spec":             {badSpec, goodTime, "bad@9 [] 0"},
		"both":                 {badSpec, badTime, "bad@9 [] 0"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := importText("bad", "9", test.spec, test.time)
			want := []string{test.want, "good@8 [192.0.2.1] 1"}

			// In a list.
			access := imports(t, []string{bad, importText("good", "8", goodSpec, goodTime)}, nil)
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { access.imports.Run(ctx) })
			<-access.imports.Synced()
			var got []string
			for _, each := range access.Imports() {
				got = append(got, describe(each))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("listed %q, want %q", got, want)
			}
			stop()
			running.Wait()

			// In a watch, which goes on.
			access = imports(t, nil, []string{bad, importText("good", "11", goodSpec, goodTime)})
			ctx, stop = context.WithCancel(t.Context())
			seen := make(chan string, 10)
			tell := func(object any) { seen <- describe(object.(*v1beta1.ServiceImport)) }
			access.imports.Handle(cache.ResourceEventHandlerFuncs{
				AddFunc:    tell,
				UpdateFunc: func(_, object any) { tell(object) },
			})
			running.Go(func() { access.imports.Run(ctx) })
			for _, want := range []string{test.want, "good@11 [192.0.2.1] 1"} {
				if got := <-seen; got != want {
					t.Errorf("watched %q, want %q", got, want)
				}
			}
			stop()
			running.Wait()
		})
	}
}

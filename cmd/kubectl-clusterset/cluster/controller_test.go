// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// TestReplicaWhoseConnectionHangs leaves time for the others: its node may be dead. Ready replicas come first.
func TestReplicaWhoseConnectionHangs(t *testing.T) {
	was := forwardTimeout
	forwardTimeout = 500 * time.Millisecond
	t.Cleanup(func() { forwardTimeout = was })
	end, asked := make(chan struct{}), make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) != "portforward" {
			const ready = `{"conditions":[{"type":"Ready","status":"True"}]}`
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"starts"}},
{"metadata":{"name":"hangs"},"status":%s},{"metadata":{"name":"leads"},"status":%[1]s}]}`, ready)
			return
		}
		asked <- path.Base(path.Dir(r.URL.Path))
		if path.Base(path.Dir(r.URL.Path)) == "hangs" {
			<-end
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(func() {
		close(end)
		server.Close()
	})
	c, err := FromConfig(&rest.Config{Host: server.URL}, "east", "mcs")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.State(t.Context()); err == nil {
		t.Error("no replica answers, and there is no error")
	}
	var got []string
	for len(asked) > 0 {
		got = append(got, <-asked)
	}
	if got = slices.Compact(got); !slices.Equal(got, []string{"hangs", "leads", "starts"}) {
		t.Errorf("asked %q", got)
	}
}

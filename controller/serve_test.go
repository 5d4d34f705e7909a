// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterset-dns/clusterset-dns/controller/metrics"
	"github.com/clusterset-dns/clusterset-dns/controller/statusz"
)

func TestServe(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	if _, err := metrics.New(registry, "v1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var stuck, ready readiness
	stuck.set("")
	serve(ctx, &group, listener, registry, &stuck, &ready, statusz.NewServer())
	get := func(path string, wantStatus int, want string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+path,
			http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != wantStatus || !strings.Contains(string(body), want) {
			t.Errorf("%s: got %d %q, want %d %q", path, response.StatusCode, body, wantStatus, want)
		}
	}
	get("/healthz", http.StatusOK, "ok")
	stuck.set("no progress")
	get("/healthz", http.StatusServiceUnavailable, "no progress")
	get("/readyz", http.StatusServiceUnavailable, "id of the local cluster")
	ready.set("caches")
	get("/readyz", http.StatusServiceUnavailable, "caches")
	ready.set("")
	get("/readyz", http.StatusOK, "ok")
	get("/metrics", http.StatusOK, "clusterset_controller_leader 0")
	get("/other", http.StatusNotFound, "")
	cancel()
	group.Wait()
}

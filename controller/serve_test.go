// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/clusterset-dns/clusterset-dns/controller/statusz"
)

func TestServe(t *testing.T) {
	listener, health := listen(t), listen(t)
	registry := prometheus.NewRegistry()
	states, err := statusz.NewServer(registry, "v1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var ready readiness
	serve(ctx, &group, listener, health, registry, &ready, states)
	get := func(at net.Listener, path string, wantStatus int, want string) {
		t.Helper()
		response, err := http.Get("http://" + at.Addr().String() + path)
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
	get(health, "/healthz", http.StatusOK, "ok")
	get(health, "/readyz", http.StatusServiceUnavailable, "state of the local cluster")
	ready.check(func() string { return "" })
	get(health, "/readyz", http.StatusOK, "ok")
	get(listener, "/metrics", http.StatusOK, "clusterset_controller_leader 0")
	get(listener, "/other", http.StatusNotFound, "")
	get(listener, "/healthz", http.StatusNotFound, "")
	get(health, "/metrics", http.StatusNotFound, "")
	cancel()
	group.Wait()
}

// TestHeldConnections opens more connections than a port keeps: the oldest are closed, and the newest are answered.
func TestHeldConnections(t *testing.T) {
	listener := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var ready readiness
	serve(ctx, &group, listener, nil, prometheus.NewRegistry(), &ready, new(statusz.Server))
	var conns []net.Conn
	answered := func(i int) {
		if _, err := io.WriteString(conns[i], "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(conns[i]), nil)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("connection %d: %v, %v", i, response, err)
		}
		_ = response.Body.Close()
	}
	for i := range connections + 2 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
		answered(i)
	}
	for _, oldest := range conns[:2] {
		if err := oldest.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := oldest.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("one of the oldest connections is open")
		}
	}
	answered(2)
	cancel()
	group.Wait()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

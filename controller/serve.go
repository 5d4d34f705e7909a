// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"

	"github.com/clusterset-dns/clusterset-dns/controller/probe"
	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// readiness has the reason why the controller is not ready. The zero value is starting.
type readiness struct{ atomic.Pointer[func() string] }

// starting is the reason while the controller waits for the API server of the local cluster: its log says for what.
func starting() string { return "the state of the local cluster is not known yet" }

// check makes get call a function for the reason. Empty means ready.
func (r *readiness) check(reason func() string) { r.Store(&reason) }

func (r *readiness) get() string {
	if reason := r.Load(); reason != nil {
		return (*reason)()
	}
	return starting()
}

// connections is the maximum number of open connections of a port.
const connections = 128

// serve answers /metrics and the paths of package state at listener, and /healthz and /readyz at health, or at listener
// if health is nil, until the context ends.
func serve(
	ctx context.Context, group *sync.WaitGroup, listener, health net.Listener, registry *prometheus.Registry,
	ready *readiness, states http.Handler,
) {
	mux, probes := http.NewServeMux(), http.NewServeMux()
	if health == nil {
		probes = mux
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("GET "+state.PathStatus, states)
	mux.Handle("GET "+state.PathExplain, states)
	probes.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, "") })
	probes.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, ready.get()) })
	for listener, handler := range map[net.Listener]http.Handler{listener: mux, health: probes} {
		if listener == nil {
			continue
		}
		server := &http.Server{
			Handler: handler, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 30 * time.Second,
		}
		group.Go(func() {
			if err := server.Serve(probe.KeepNewest(listener, connections)); !errors.Is(err, http.ErrServerClosed) {
				klog.FromContext(ctx).Error(err, "Cannot serve metrics or health any more", "address", listener.Addr())
			}
		})
		context.AfterFunc(ctx, func() { _ = server.Close() }) // may cut off a scrape, which is harmless
	}
}

func answer(w http.ResponseWriter, problem string) {
	if problem != "" {
		http.Error(w, problem, http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n")) // fails only if the client has disconnected
}

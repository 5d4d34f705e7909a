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

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// readiness is why the controller is not ready. The zero value is not ready.
type readiness struct {
	reason atomic.Pointer[func() string]
}

// set fixes the reason. Empty means ready.
func (r *readiness) set(reason string) { r.check(func() string { return reason }) }

// check asks for the reason each time.
func (r *readiness) check(reason func() string) { r.reason.Store(&reason) }

func (r *readiness) get() string {
	if reason := r.reason.Load(); reason != nil {
		return (*reason)()
	}
	return "the id of the local cluster is not known yet"
}

// serve answers /metrics, /healthz, /readyz and those of state until the context ends.
func serve(
	ctx context.Context, group *sync.WaitGroup, listener net.Listener, registry *prometheus.Registry, stuck,
	ready *readiness, states http.Handler,
) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, stuck.get()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, ready.get()) })
	mux.Handle("GET "+state.PathStatus, states)
	mux.Handle("GET "+state.PathExplain, states)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	group.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Cannot serve metrics and health any more", "address", listener.Addr())
		}
	})
	group.Go(func() {
		<-ctx.Done()
		_ = server.Close() // nothing is lost with a scrape
	})
}

func answer(w http.ResponseWriter, problem string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if problem == "" {
		_, _ = w.Write([]byte("ok\n")) // a client that went away is its own affair
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.Write([]byte(problem + "\n"))
}

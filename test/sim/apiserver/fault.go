// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Administrator is the Host of clients that no outage or fault affects.
const Administrator = "administrator"

// Serve answers a request. An error is a failure of the connection.
type Serve func(*http.Request) (*http.Response, error)

// A Fault answers a request instead of the server, or changes the request or the response.
type Fault func(req *http.Request, serve Serve) (*http.Response, error)

// SetFault sets the fault for the requests of a client, which is the Host of its requests; empty means all clients
// without a fault of their own. It ends the client's watches. A nil fault removes the fault.
func (s *Server) SetFault(client string, fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[client] = fault
	s.store.endIf(func(w *stream) bool { return client == "" || w.target.Host == client }, io.ErrUnexpectedEOF)
}

// Stop makes the server refuse connections, as if it was killed. Watches break off.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.store.endIf(func(*stream) bool { return true }, io.ErrUnexpectedEOF)
}

// Start undoes Stop. The server still has its objects, but watches from before get 410, because a watch cache begins
// when the server starts.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = false
	s.store.cached = s.store.revision
}

// A Gate blocks requests while it is frozen.
type Gate struct {
	mu     sync.Mutex
	frozen chan struct{} // closed by Thaw; nil if the gate is not frozen
}

// Freeze blocks everything until Thaw, like a stopped process or a hanging etcd: requests wait, and watches send
// nothing.
func (g *Gate) Freeze() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.frozen == nil {
		g.frozen = make(chan struct{})
	}
}

// Thaw undoes Freeze. Requests that were canceled meanwhile are not served.
func (g *Gate) Thaw() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.frozen != nil {
		close(g.frozen)
		g.frozen = nil
	}
}

// Pass waits while the gate is frozen.
func (g *Gate) Pass(ctx context.Context) error {
	for {
		g.mu.Lock()
		frozen := g.frozen
		g.mu.Unlock()
		if frozen == nil {
			return nil
		}
		select {
		case <-frozen:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// thawed waits while the server is frozen, unless the client is the administrator.
func (s *Server) thawed(ctx context.Context, client string) error {
	if client == Administrator {
		return nil
	}
	return s.Pass(ctx)
}

// faulty serves a request with the fault for its client, if any, or normally.
func (s *Server) faulty(req *http.Request) (*http.Response, error) {
	client := req.URL.Host
	if err := s.thawed(req.Context(), client); err != nil {
		return nil, err
	}
	s.mu.Lock()
	stopped, fault := s.stopped, s.faults[client]
	if fault == nil {
		fault = s.faults[""]
	}
	s.mu.Unlock()
	switch {
	case client == Administrator:
	case stopped:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case fault != nil:
		return fault(req, s.answer)
	}
	return s.answer(req)
}

// Answers are faults in which the server refuses all requests, or answers none. TestBounded of controller/member has answers
// that are malformed.
var Answers = []struct {
	Name  string
	Fault Fault
}{
	{"an internal error (500)", Refusal(apierrors.NewInternalError(io.ErrUnexpectedEOF))},
	{"unavailable (503)", Refusal(apierrors.NewServiceUnavailable("try again"))},
	{"too many requests (429)", Refusal(apierrors.NewTooManyRequests("try again", 1))},
	{"unauthorized (401)", Refusal(apierrors.NewUnauthorized("the token has expired"))},
	{"forbidden (403)", Refusal(apierrors.NewForbidden(schema.GroupResource{}, "", nil))},
	{"no answer", Hang},
	{"a closed connection", func(*http.Request, Serve) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }},
}

// Refusal answers with an error.
func Refusal(failure *apierrors.StatusError) Fault {
	return func(req *http.Request, _ Serve) (*http.Response, error) {
		return refuse(req, failure), nil
	}
}

// Hang does not answer until the client gives up.
func Hang(req *http.Request, _ Serve) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// WithoutSlices answers that there are no EndpointSlices, which a reader could believe.
func WithoutSlices(req *http.Request, serve Serve) (*http.Response, error) {
	if !strings.HasSuffix(req.URL.Path, "/endpointslices") {
		return serve(req)
	}
	empty := req.Clone(req.Context())
	query := empty.URL.Query()
	query.Set("labelSelector", "there=is,there=no")
	empty.URL.RawQuery = query.Encode()
	return serve(empty)
}

// Slow delays each response.
func Slow(by time.Duration) Fault {
	return func(req *http.Request, serve Serve) (*http.Response, error) {
		select {
		case <-time.After(by):
			return serve(req)
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
}

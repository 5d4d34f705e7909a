// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// TestConnect: each kind of failure has its step. A name has addresses of two families, of which one may be cut.
func TestConnect(t *testing.T) {
	lookup := func(_ context.Context, name string) ([]string, error) {
		if name == "" {
			return nil, errors.New("no such host")
		}
		return strings.Fields(name), nil
	}
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer free.Close()
	cut := func(response http.ResponseWriter, request *http.Request) {
		if request.ContentLength > smallSize {
			panic(http.ErrAbortHandler)
		}
		echo("west")(response, request)
	}
	truncate := func(response http.ResponseWriter, _ *http.Request) {
		response.Header().Set(identityHeader, "west")
		fmt.Fprint(response, "short")
	}
	for name, test := range map[string]struct {
		name  string           // its addresses
		serve http.HandlerFunc // nil for no server at 127.0.0.1
		want  state.ProbeResult
	}{
		"works":           {"127.0.0.1", echo("west"), state.ProbeResult{Step: state.ProbeOK, Address: "127.0.0.1", Error: ""}},
		"another pod":     {"127.0.0.1", echo("east"), state.ProbeResult{Step: state.ProbeFailed, Address: "127.0.0.1", Error: "east answers instead of west"}},
		"another program": {"127.0.0.1", http.NotFound, state.ProbeResult{Step: state.ProbeFailed, Address: "127.0.0.1", Error: "another program answers instead of west"}},
		"a short answer":  {"127.0.0.1", truncate, state.ProbeResult{Step: state.ProbeFailed, Address: "127.0.0.1", Error: "5 of 512 bytes returned"}},
		"a small MTU":     {"127.0.0.1", cut, state.ProbeResult{Step: state.ProbeLargeLost, Address: "127.0.0.1", Error: ""}},
		"no server":       {"127.0.0.1", nil, state.ProbeResult{Step: state.ProbeFailed, Address: "127.0.0.1", Error: "connection refused"}},
		"no name":         {"", nil, state.ProbeResult{Step: state.ProbeUnresolved, Address: "", Error: "no such host"}},
		"one of two":      {"127.0.0.1 127.0.0.2", echo("west"), state.ProbeResult{Step: state.ProbeFailed, Address: "127.0.0.2", Error: "refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.serve)
			if test.serve == nil {
				server.Close()
			} else {
				t.Cleanup(server.Close)
			}
			port := server.Listener.Addr().(*net.TCPAddr).Port
			got := connect(t.Context(), lookup, test.name, "west", port)
			if got.Step != test.want.Step || got.Address != test.want.Address || !strings.Contains(got.Error, test.want.Error) ||
				got.Step != state.ProbeOK && got.Error == "" {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
	ended, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	if got := stepOf(exchange(ended, free.Addr().String(), "west", smallSize), smallSize); got != state.ProbeTimeout {
		t.Errorf("a server that never answers: %s", got)
	}
}

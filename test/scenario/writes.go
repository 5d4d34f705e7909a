// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// writes are those that the controllers of a cluster ask its API server for, by method and resource, and the conflicts among
// them, without Leases, Events and dry runs. They are counted on the way there, so that nobody else's are among them.
type writes struct {
	mu      sync.Mutex
	asked   map[string]int
	refused string // the name of a write that is forbidden
}

func newWrites() *writes { return &writes{asked: map[string]int{}} }

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		name := nameOfWrite(request)
		if name == "" {
			return next.RoundTrip(request)
		}
		if w.count(name) {
			return forbidden(request), nil
		}
		response, err := next.RoundTrip(request)
		if err == nil && response.StatusCode == http.StatusConflict {
			w.count(conflicts)
		}
		return response, err
	})
}

// conflicts is what writes that were refused as stale are counted as, too.
const conflicts = "conflicts"

// count counts a write, and tells whether it is forbidden.
func (w *writes) count(name string) (refused bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[name]++
	return name == w.refused
}

// refuse has an admission controller forbid a write; an empty name ends that.
func (w *writes) refuse(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = name
}

func forbidden(request *http.Request) *http.Response {
	const text = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"exceeded quota","reason":"Forbidden","code":403}`
	return &http.Response{
		StatusCode: http.StatusForbidden, Proto: "HTTP/2.0", ProtoMajor: 2, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)),
	}
}

// nameOfWrite is how a write is counted, empty for what is none.
func nameOfWrite(request *http.Request) string {
	if request.Method == http.MethodGet || request.URL.Query().Get("dryRun") != "" {
		return ""
	}
	for part := range strings.SplitSeq(request.URL.Path, "/") {
		switch part {
		case "services", "endpointslices", "serviceimports", "serviceexports":
			return request.Method + " " + part
		}
	}
	return ""
}

// times is how often a write was asked for.
func (w *writes) times(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[name]
}

func (w *writes) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprint(w.asked)
}

// longest is more than the longest interval after which a controller looks at a service again by itself.
const longest = 12 * time.Second

// Quiet waits until the controllers of the clusters, all if none is named, ask for no write for some time.
func (s *Set) Quiet(clusters ...*Cluster) {
	clusters, before := s.or(clusters), ""
	s.Eventually("rest", func() error {
		s.Pass(longest)
		last := before
		if before = written(clusters); before != last {
			return fmt.Errorf("writes go on:\n%s%s", last, before)
		}
		return nil
	})
}

// written is what the controllers of clusters asked for, as text.
func written(clusters []*Cluster) (text string) {
	for _, c := range clusters {
		text += c.Name + ": " + c.written.String() + "\n"
	}
	return text
}

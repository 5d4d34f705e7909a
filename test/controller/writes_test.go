// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// countedResources are what a controller writes, but for Leases and Events.
var countedResources = []string{"services", "endpointslices", "serviceimports", "serviceexports"}

// writes are those that the controllers of one cluster ask its API server for,
// by method and resource. They are counted on the way there, so that nobody
// else's are among them. Dry runs are left out.
type writes struct {
	mu    sync.Mutex
	asked map[string]int
	last  time.Time
}

func newWrites() *writes {
	return &writes{asked: map[string]int{}}
}

// wrap counts what passes.
func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		name := nameOfWrite(request)
		if name == "" {
			return next.RoundTrip(request)
		}
		w.count(name)
		response, err := next.RoundTrip(request)
		w.note()
		return response, err
	})
}

// count adds one to the writes of a name, and notes the time.
func (w *writes) count(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
	w.asked[name]++
}

// note notes the time.
func (w *writes) note() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
}

// nameOfWrite is how a write is counted, empty for what is none. Paths are
// /api/v1/… or /apis/<group>/<version>/…, then namespaces/<namespace>,
// the resource, a name and a subresource.
func nameOfWrite(request *http.Request) string {
	if request.Method == http.MethodGet || request.URL.Query().Get("dryRun") != "" {
		return ""
	}
	parts := strings.Split(request.URL.Path, "/")
	at := slices.IndexFunc(parts, func(part string) bool { return slices.Contains(countedResources, part) })
	if at < 0 {
		return ""
	}
	name := request.Method + " " + parts[at]
	if len(parts) > at+2 {
		name += "/" + parts[at+2]
	}
	return name
}

// String is all of them in one comparable text.
func (w *writes) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprint(w.asked)
}

// after is when the last of them was asked for or answered, or the given time
// if that is later.
func (w *writes) after(begin time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last.After(begin) {
		return w.last
	}
	return begin
}

// quiet waits until the controllers of the clusters ask for no write for a
// while. It fails where they never come to rest.
func quiet(t testing.TB, clusters ...*cluster) {
	t.Helper()
	const rest = 2 * time.Second
	begin := time.Now()
	eventually(t, "rest", func(context.Context) error {
		for _, c := range clusters {
			if last := c.written.after(begin); time.Since(last) < rest {
				return fmt.Errorf("writes of %s go on: %v", c.Name(), c.written)
			}
		}
		return nil
	})
}

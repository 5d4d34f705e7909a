// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"maps"
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
	mu               sync.Mutex
	asked, conflicts map[string]int
	last             time.Time
}

func newWrites() *writes {
	return &writes{asked: map[string]int{}, conflicts: map[string]int{}}
}

// wrap counts what passes.
func (w *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		name := nameOfWrite(request)
		if name == "" {
			return next.RoundTrip(request)
		}
		w.count(w.asked, name)
		response, err := next.RoundTrip(request)
		switch {
		case err == nil && response.StatusCode == http.StatusConflict:
			w.count(w.conflicts, name)
		default:
			w.count(nil, name)
		}
		return response, err
	})
}

// count adds one to the counts, of which nil are none, and notes the time.
func (w *writes) count(counts map[string]int, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
	if counts != nil {
		counts[name]++
	}
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

// of is how many writes of that name were asked for.
func (w *writes) of(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[name]
}

// stale is how many were refused because the object had changed meanwhile, or
// was there.
func (w *writes) stale() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.conflicts)
}

// String is all of them in one comparable text.
func (w *writes) String() string { return w.to(countedResources...) }

// to is those of some resources, in one comparable text.
func (w *writes) to(resources ...string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	chosen := maps.Clone(w.asked)
	maps.DeleteFunc(chosen, func(name string, _ int) bool {
		return !slices.ContainsFunc(resources, func(resource string) bool { return strings.Contains(name, " "+resource) })
	})
	return fmt.Sprint(chosen)
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

// longest is more than the longest interval after which a controller looks at a
// service again by itself.
const longest = 12 * time.Second

// quiet waits until the controllers of the clusters ask for no write for a
// while. It fails where they never come to rest.
func quiet(t testing.TB, clusters ...*cluster) {
	t.Helper()
	quietFor(t, 2*time.Second, clusters...)
}

// quietFor is quiet for a while of the given length.
func quietFor(t testing.TB, rest time.Duration, clusters ...*cluster) {
	t.Helper()
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

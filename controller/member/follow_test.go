// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// answers is a server that answers one request at a time: lists of slices are empty, and those of the heartbeat have leases, nil
// for none. watch answers watches.
func answers(t *testing.T, leases []coordinationv1.Lease,
	watch func(request *http.Request, resource string) (io.ReadCloser, error),
) roundTrip {
	var mu sync.Mutex
	return func(request *http.Request) (io.ReadCloser, error) {
		mu.Lock()
		defer mu.Unlock()
		version, resource := metav1.ListMeta{ResourceVersion: "200"}, path.Base(request.URL.Path)
		switch {
		case request.URL.Query().Get("watch") == "true":
			return watch(request, resource)
		case resource != "leases":
			return sent(t, &discoveryv1.EndpointSliceList{ListMeta: version}), nil
		}
		return sent(t, &coordinationv1.LeaseList{ListMeta: version, Items: leases}), nil
	}
}

// opened is a watch that ends with the returned writer, or with the request.
func opened(request *http.Request) (io.ReadCloser, *io.PipeWriter) {
	body, end := io.Pipe()
	context.AfterFunc(request.Context(), func() { end.Close() })
	return body, end
}

// reads reads a member until stop is called.
func (m *Member) reads(t *testing.T) (stop func()) {
	ctx, end := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() { m.readSlices(ctx) })
	reading.Go(func() { m.readHeartbeats(ctx) })
	return func() {
		end()
		reading.Wait()
	}
}

// TestEachWatchFollowsAList: slices are listed before each watch.
func TestEachWatchFollowsAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string // of slices
		server := answers(t, nil, func(request *http.Request, resource string) (io.ReadCloser, error) {
			body, end := opened(request)
			if resource != "leases" {
				if asked = append(asked, "watch"); len(asked) == 2 {
					time.AfterFunc(time.Minute, func() { end.Close() })
				}
			}
			return body, nil
		})
		m := (&surroundings{listed: func(string, []types.NamespacedName) { asked = append(asked, "list") }}).west()
		stop := connected(t, m, "https://west", server).reads(t)
		<-time.After(2 * time.Minute)
		stop()
		if got := strings.Join(asked, " "); got != "list watch list watch" {
			t.Errorf("asked for %q", got)
		}
	})
}

// TestBackoff: while watches fail, lists are retried with backoff. After a watch that lasted, the next request follows at once,
// even if the watch ended with an error. A request that is canceled when the member leaves is no problem.
func TestBackoff(t *testing.T) {
	gone := event(t, "ERROR", encode(t, &metav1.Status{Message: "gone", Code: 410}), 0)
	for name, test := range map[string]struct {
		lasts time.Duration
		says  string // the event before the end of the watch
		often bool
	}{
		"refused": {0, "", false}, "ended": {lasting + time.Second, "", true}, "ended with an error": {lasting + time.Second, gone, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked, hangs := map[string]int{}, make(chan struct{})
			server := answers(t, nil, func(request *http.Request, resource string) (io.ReadCloser, error) {
				if asked[resource]++; test.lasts == 0 {
					return nil, apierrors.NewUnauthorized("")
				}
				body, end := opened(request)
				time.AfterFunc(test.lasts, func() {
					_, _ = io.WriteString(end, test.says)
					end.Close()
				})
				return body, nil
			})
			m := connected(t, (&surroundings{}).west(), "https://west", roundTrip(func(request *http.Request) (io.ReadCloser, error) {
				select {
				case <-hangs:
					<-request.Context().Done()
					return nil, request.Context().Err()
				default:
					return server(request)
				}
			}))
			stop := m.reads(t)
			<-time.After(10 * time.Minute)
			synctest.Wait()
			for _, resource := range []string{"leases", "endpointslices"} {
				if times := asked[resource]; (times > 80) != test.often {
					t.Errorf("%s: watches of %s are opened %d times in ten minutes", name, resource, times)
				}
			}
			close(hangs)
			<-time.After(time.Minute)
			stop()
			if err := m.Problem(); test.often && err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSlicesFollowTheHeartbeat: after an outage, heartbeats do not count long before the slices are read.
func TestSlicesFollowTheHeartbeat(t *testing.T) {
	for range 10 { // delays are random
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			began, asked := time.Now(), map[string]time.Time{}
			server := answers(t, nil, func(request *http.Request, _ string) (io.ReadCloser, error) {
				body, _ := opened(request)
				return body, nil
			})
			stop := connected(t, (&surroundings{}).west(), "https://west", roundTrip(func(request *http.Request) (io.ReadCloser, error) {
				if time.Since(began) < 10*time.Minute {
					return nil, syscall.ECONNREFUSED
				}
				mu.Lock()
				if resource := path.Base(request.URL.Path); asked[resource].IsZero() {
					asked[resource] = time.Now()
				}
				mu.Unlock()
				return server(request)
			})).reads(t)
			<-time.After(11 * time.Minute)
			stop()
			if late := asked["endpointslices"].Sub(asked["leases"]); late > time.Second {
				t.Errorf("the slices are listed %s after the heartbeat", late)
			}
		})
	}
}

// TestManyHeartbeats: a member whose heartbeat changes all the time, or that lists many, is judged about five times a second, so
// that it causes few Events, lines of the log and reconciles.
func TestManyHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heartbeats, renewed := 0, event(t, "MODIFIED", encode(t, &coordinationv1.Lease{}), 0)
		m := (&surroundings{heard: func(Heartbeat, bool) { heartbeats++ }}).west()
		stop := connected(t, m, "https://west", answers(t, make([]coordinationv1.Lease, 1000), func(request *http.Request, resource string) (io.ReadCloser, error) {
			body, end := opened(request)
			if resource == "leases" {
				go func() { _, _ = io.WriteString(end, strings.Repeat(renewed, 1000)) }()
			}
			return body, nil
		})).reads(t)
		<-time.After(time.Minute)
		synctest.Wait()
		if heartbeats > 310 {
			t.Errorf("%d heartbeats in a minute", heartbeats)
		}
		stop()
	})
}

// A busy server refuses all requests until a time, with a Retry-After of some seconds.
type busy struct {
	http.RoundTripper
	until time.Time
	after string
}

// RoundTrip implements http.RoundTripper.
func (b busy) RoundTrip(request *http.Request) (*http.Response, error) {
	if time.Now().Before(b.until) {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {b.after}}, Body: http.NoBody}, nil
	}
	return b.RoundTripper.RoundTrip(request)
}

// TestRetryAfter: a server that is unavailable for a minute, with any Retry-After, is read soon after it is back. The problem
// is reported meanwhile, unless Retry-After is short.
func TestRetryAfter(t *testing.T) {
	for after, told := range map[string]bool{"1": false, "7": false, "8": true, "3600": true, "9223372036854775807": true} {
		synctest.Test(t, func(t *testing.T) {
			back := time.Now().Add(time.Minute)
			if !told {
				back = time.Now().Add(5 * time.Second)
			}
			m := (&surroundings{}).west()
			stop := connected(t, m, "https://west", busy{answers(t, nil, func(request *http.Request, _ string) (io.ReadCloser, error) {
				body, _ := opened(request)
				return body, nil
			}), back, after}).reads(t)
			<-time.After(time.Until(back) - 1)
			if problem := m.Problem(); (problem != nil) != told {
				t.Errorf("after %s s: the problem is %v", after, problem)
			}
			<-time.After(2 * retry.Cap)
			if m.Problem() != nil || !m.Synced() {
				t.Errorf("after %s s: it is back, and was listed: %t; %v", after, m.Synced(), m.Problem())
			}
			stop()
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"io"
	"net/http"
	"path"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// TestWhatIsListedAgain: after each end of a watch, slices are watched again, and listed before if it may be that they would
// not be complete otherwise.
func TestWhatIsListedAgain(t *testing.T) {
	for name, test := range map[string]struct {
		lasts  time.Duration // the first watch, until it ends without a change
		second error         // of the second watch, if it is not opened
		room   bool          // there is some for what was left out, while the first watch lasts
		want   []string
	}{
		"it lasted":        {lasts: time.Minute, want: []string{"list", "watch", "watch"}},
		"it ended at once": {lasts: shortest / 2, want: []string{"list", "watch", "list", "watch"}},
		"too busy":         {lasts: time.Minute, second: apierrors.NewTooManyRequests("", 1), want: []string{"list", "watch", "watch", "watch"}},
		"it is refused":    {lasts: time.Minute, second: apierrors.NewUnauthorized(""), want: []string{"list", "watch", "watch", "list", "watch"}},
		"there is room":    {lasts: time.Hour, room: true, want: []string{"list", "watch", "list", "watch"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				var mu sync.Mutex
				watches := 0
				server := roundTrip(func(request *http.Request) (io.ReadCloser, error) {
					mu.Lock()
					defer mu.Unlock()
					version := metav1.ListMeta{ResourceVersion: "1"}
					if path.Base(request.URL.Path) == "leases" {
						return sent(t, &coordinationv1.LeaseList{ListMeta: version}), nil
					}
					if request.URL.Query().Get("watch") != "true" {
						asked = append(asked, "list")
						return sent(t, &discoveryv1.EndpointSliceList{ListMeta: version}), nil
					}
					asked = append(asked, "watch")
					body, end := io.Pipe()
					context.AfterFunc(request.Context(), func() { end.Close() })
					switch watches++; watches {
					case 1:
						time.AfterFunc(test.lasts, func() { end.Close() })
					case 2:
						return body, test.second
					}
					return body, nil
				})
				m := (&surroundings{}).west()
				pool := limits.NewPool(1)
				pool.Hold("other", 1)
				m.account = limits.NewAccount("west", limits.Default, pool, nil)
				c := connected(t, m, "https://west", server)
				ctx, stop := context.WithCancel(t.Context())
				var reading sync.WaitGroup
				reading.Go(func() { c.readSlices(ctx) })
				if test.room {
					<-time.After(time.Second)
					m.put(slice("one", "web", "2"))
					pool.Hold("other", 0)
				}
				<-time.After(2 * time.Minute)
				stop()
				reading.Wait()
				if !slices.Equal(asked, test.want) {
					t.Errorf("asked for %q, want %q", asked, test.want)
				}
			})
		})
	}
}

// TestBackoff: what is watched in vain is listed again more and more seldom, and a watch that lasted is opened again at once. A
// request that the end of the member cancels is no problem.
func TestBackoff(t *testing.T) {
	for lasts, often := range map[time.Duration]bool{0: false, lasting + time.Second: true} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			asked, hangs := map[string]int{}, false
			c := connected(t, (&surroundings{}).west(), "https://west", roundTrip(func(request *http.Request) (io.ReadCloser, error) {
				mu.Lock()
				hang := hangs
				mu.Unlock()
				if hang {
					<-request.Context().Done()
					return nil, request.Context().Err()
				}
				resource, version := path.Base(request.URL.Path), metav1.ListMeta{ResourceVersion: "1"}
				switch {
				case request.URL.Query().Get("watch") == "true":
					mu.Lock()
					asked[resource]++
					mu.Unlock()
					if lasts == 0 {
						return nil, apierrors.NewUnauthorized("")
					}
					body, end := io.Pipe()
					time.AfterFunc(lasts, func() { end.Close() })
					return body, nil
				case resource == "leases":
					return sent(t, &coordinationv1.LeaseList{ListMeta: version}), nil
				default:
					return sent(t, &discoveryv1.EndpointSliceList{ListMeta: version}), nil
				}
			}))
			ctx, stop := context.WithCancel(t.Context())
			var reading sync.WaitGroup
			reading.Go(func() { c.readSlices(ctx) })
			reading.Go(func() { c.readHeartbeats(ctx) })
			<-time.After(10 * time.Minute)
			for _, resource := range []string{"leases", "endpointslices"} {
				mu.Lock()
				if times := asked[resource]; (times > 80) != often {
					t.Errorf("watches of %s that last %s are opened %d times in ten minutes", resource, lasts, times)
				}
				hangs = true
				mu.Unlock()
			}
			<-time.After(time.Minute)
			stop()
			reading.Wait()
			if err := c.Problem(); often && err != nil {
				t.Error(err)
			}
		})
	}
}

// answers is a server that answers with a status, and asks to repeat the request after some seconds.
type answers func(*http.Request) (status int, after string, body io.ReadCloser)

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(request *http.Request) (*http.Response, error) {
	status, after, body := a(request)
	return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}, Body: body}, nil
}

// TestRetryAfter: a server that is away for a minute, and asks for more patience than that, is read soon after it is back. The
// problem is known meanwhile, but not if it asks for a moment only.
func TestRetryAfter(t *testing.T) {
	for after, told := range map[string]bool{"1": false, "7": false, "8": true, "3600": true, "9223372036854775807": true} {
		synctest.Test(t, func(t *testing.T) {
			back := time.Now().Add(time.Minute)
			if !told {
				back = time.Now().Add(5 * time.Second)
			}
			m := (&surroundings{}).west()
			c := connected(t, m, "https://west", answers(func(request *http.Request) (int, string, io.ReadCloser) {
				query := request.URL.Query()
				switch {
				case time.Now().Before(back):
					return http.StatusServiceUnavailable, after, http.NoBody
				case query.Get("watch") == "true":
					body, end := io.Pipe()
					context.AfterFunc(request.Context(), func() { end.Close() })
					return http.StatusOK, "", body
				case path.Base(request.URL.Path) == "leases":
					return http.StatusOK, "", sent(t, &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
				}
				return http.StatusOK, "", sent(t, &discoveryv1.EndpointSliceList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
			}))
			ctx, stop := context.WithCancel(t.Context())
			var reading sync.WaitGroup
			reading.Go(func() { c.readSlices(ctx) })
			reading.Go(func() { c.readHeartbeats(ctx) })
			<-time.After(time.Until(back) - 1)
			if problem := m.Problem(); (problem != nil) != told {
				t.Errorf("after %s s: the problem is %v", after, problem)
			}
			<-time.After(2 * retry.Cap)
			if m.Problem() != nil || !m.Synced() {
				t.Errorf("after %s s: it is back, and was listed: %t; %v", after, m.Synced(), m.Problem())
			}
			stop()
			reading.Wait()
		})
	}
}

// TestWatchesThatEndWithAnError: one that lasted is followed by a list at once, however many did.
func TestWatchesThatEndWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := event(t, "ERROR", encode(t, &metav1.Status{Message: "gone", Code: 410}), 0)
		var ended time.Time
		watches := 0
		c := connected(t, (&surroundings{}).west(), "https://west", answers(func(request *http.Request) (int, string, io.ReadCloser) {
			query, version := request.URL.Query(), metav1.ListMeta{ResourceVersion: "1"}
			switch {
			case path.Base(request.URL.Path) == "leases":
				return http.StatusOK, "", sent(t, &coordinationv1.LeaseList{ListMeta: version})
			case query.Get("watch") == "true":
				watches++
				body, end := io.Pipe()
				context.AfterFunc(request.Context(), func() { end.Close() })
				time.AfterFunc(time.Minute, func() { ended = time.Now(); _, _ = io.WriteString(end, gone) })
				return http.StatusOK, "", body
			}
			if late := time.Since(ended); watches > 0 && late > time.Second {
				t.Errorf("after %d watches, it is listed %s later", watches, late)
			}
			return http.StatusOK, "", sent(t, &discoveryv1.EndpointSliceList{ListMeta: version})
		}))
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Minute)
		defer stop()
		if c.readSlices(ctx); watches < 19 {
			t.Errorf("%d watches", watches)
		}
	})
}

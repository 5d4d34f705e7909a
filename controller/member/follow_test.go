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
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/limits"
)

// answers has requests answered one at a time: lists are empty, and watches as the test has them.
func answers(t *testing.T, watch func(request *http.Request, resource string) (io.ReadCloser, error)) roundTrip {
	var mu sync.Mutex
	return func(request *http.Request) (io.ReadCloser, error) {
		mu.Lock()
		defer mu.Unlock()
		version, resource := metav1.ListMeta{ResourceVersion: "1"}, path.Base(request.URL.Path)
		switch {
		case request.URL.Query().Get("watch") == "true":
			return watch(request, resource)
		case resource == "leases":
			return sent(t, &coordinationv1.LeaseList{ListMeta: version}), nil
		}
		return sent(t, &discoveryv1.EndpointSliceList{ListMeta: version}), nil
	}
}

// opened is a watch until its end, or that of the request.
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
				var asked []string // of slices
				watches := 0
				server := answers(t, func(request *http.Request, resource string) (io.ReadCloser, error) {
					body, end := opened(request)
					if resource == "leases" {
						return body, nil
					}
					asked = append(asked, "watch")
					switch watches++; watches {
					case 1:
						time.AfterFunc(test.lasts, func() { end.Close() })
					case 2:
						return body, test.second
					}
					return body, nil
				})
				m := (&surroundings{listed: func(string, []types.NamespacedName) { asked = append(asked, "list") }}).west()
				pool := limits.NewPool(1)
				pool.Hold("other", 1)
				m.Store = limits.NewStore("west", limits.Default, pool, nil)
				stop := connected(t, m, "https://west", server).reads(t)
				if test.room {
					<-time.After(time.Second)
					m.put(slice("one", "web", "2"))
					pool.Hold("other", 0)
				}
				<-time.After(2 * time.Minute)
				stop()
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
			asked, hangs := map[string]int{}, make(chan struct{})
			server := answers(t, func(request *http.Request, resource string) (io.ReadCloser, error) {
				if asked[resource]++; lasts == 0 {
					return nil, apierrors.NewUnauthorized("")
				}
				body, end := opened(request)
				time.AfterFunc(lasts, func() { end.Close() })
				return body, nil
			})
			c := connected(t, (&surroundings{}).west(), "https://west", roundTrip(func(request *http.Request) (io.ReadCloser, error) {
				select {
				case <-hangs:
					<-request.Context().Done()
					return nil, request.Context().Err()
				default:
					return server(request)
				}
			}))
			stop := c.reads(t)
			<-time.After(10 * time.Minute)
			synctest.Wait()
			for _, resource := range []string{"leases", "endpointslices"} {
				if times := asked[resource]; (times > 80) != often {
					t.Errorf("watches of %s that last %s are opened %d times in ten minutes", resource, lasts, times)
				}
			}
			close(hangs)
			<-time.After(time.Minute)
			stop()
			if err := c.Problem(); often && err != nil {
				t.Error(err)
			}
		})
	}
}

// A busy server refuses what it is asked for a time, and asks to repeat it after some seconds.
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
			stop := connected(t, m, "https://west", busy{answers(t, func(request *http.Request, _ string) (io.ReadCloser, error) {
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

// TestWatchesThatEndWithAnError: one that lasted is followed by a list at once, however many did.
func TestWatchesThatEndWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := event(t, "ERROR", encode(t, &metav1.Status{Message: "gone", Code: 410}), 0)
		var ended time.Time
		watches := 0
		m := (&surroundings{listed: func(string, []types.NamespacedName) {
			if late := time.Since(ended); watches > 0 && late > time.Second {
				t.Errorf("after %d watches, it is listed %s later", watches, late)
			}
		}}).west()
		stop := connected(t, m, "https://west", answers(t, func(request *http.Request, resource string) (io.ReadCloser, error) {
			body, end := opened(request)
			if resource == "endpointslices" {
				watches++
				time.AfterFunc(time.Minute, func() { ended = time.Now(); _, _ = io.WriteString(end, gone) })
			}
			return body, nil
		})).reads(t)
		<-time.After(20 * time.Minute)
		if stop(); watches < 19 {
			t.Errorf("%d watches", watches)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// roundTrip is a server.
type roundTrip func(*http.Request) (io.ReadCloser, error)

// RoundTrip implements http.RoundTripper.
func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := r(request)
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeProtobuf}}, Body: body}
	if refused := apierrors.APIStatus(nil); errors.As(err, &refused) {
		response.StatusCode, response.Body, err = int(refused.Status().Code), http.NoBody, nil
	}
	if err != nil {
		return nil, err
	}
	return response, nil
}

// TestSlowServers: servers that answer a byte at a time, as slowly as they may, delay the list of another member only briefly:
// of times * listsAtOnce servers, each reads at most one page before it. So many pages are in memory at most. Servers that do not
// answer keep no member waiting.
func TestSlowServers(t *testing.T) {
	for _, times := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			set := (&surroundings{}).west().set
			get := func(ctx context.Context, server roundTrip) error {
				one := (&surroundings{}).west() //nolint:contextcheck // a member outlives a request
				one.set = set
				return connected(t, one, "https://west", server).page(ctx, metav1.ListOptions{}, func(*discoveryv1.EndpointSliceList) {})
			}
			ctx, stop := context.WithCancel(t.Context())
			drip := func(*http.Request) (io.ReadCloser, error) { // a byte every 5 s
				body, in := io.Pipe()
				go func() {
					for err := error(nil); err == nil; {
						<-time.After(5 * time.Second)
						_, err = in.Write([]byte("k"))
					}
				}()
				return body, nil
			}
			silent := func(request *http.Request) (io.ReadCloser, error) {
				<-request.Context().Done()
				return nil, request.Context().Err()
			}
			for range times * listsAtOnce {
				for _, server := range []roundTrip{drip, silent} {
					go func() {
						for ctx.Err() == nil {
							_ = get(ctx, server)
						}
					}()
				}
			}
			<-time.After(time.Minute + time.Second)
			pages, began := len(set.turns), time.Now()
			err := get(t.Context(), func(*http.Request) (io.ReadCloser, error) { return sent(t, &discoveryv1.EndpointSliceList{}), nil })
			if took := time.Since(began); err != nil || took > time.Duration(times)*pageWithin || pages != listsAtOnce {
				t.Errorf("%d times as many: the page of another member took %s, with %d pages at once: %v", times, took, pages, err)
			}
			stop()
			if <-time.After(2 * pageWithin); len(set.turns) != 0 {
				t.Errorf("%d turns were not given back", len(set.turns))
			}
		})
	}
}

// TestLostWatch: a watch that delivers nothing any more, not even its end, is closed. Bookmarks keep it open.
func TestLostWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bookmarks = 4
		m := connected(t, (&surroundings{}).west(), "https://west", roundTrip(func(*http.Request) (io.ReadCloser, error) {
			body, writer := io.Pipe()
			go func() {
				for range bookmarks {
					<-time.After(time.Minute)
					_, _ = io.WriteString(writer, event(t, "BOOKMARK", encode(t, slice("one", "web", "2")), 0))
				}
			}()
			return body, nil
		}))
		began, nobody := time.Now(), func(*discoveryv1.EndpointSlice) { t.Error("there is an event") }
		if err := watchFrom(t.Context(), m, watchedSlices, m.slicesRequest, "1", nobody, nobody); err != nil {
			t.Error(err)
		}
		if lasted := time.Since(began); lasted != bookmarks*time.Minute+silence {
			t.Errorf("the watch lasted %s", lasted)
		}
	})
}

// pages is a server that answers lists in pages, and too large a page with an error.
type pages struct {
	slices []*discoveryv1.EndpointSlice
	// made makes each of count slices, which replace slices.
	made  func(i int) *discoveryv1.EndpointSlice
	count int
	most  int64
	// err is the error of a page with more slices than most; nil means that the page is too large.
	err   error
	grows bool // later pages may have any size
	asked []int64
}

// serve returns the server, which has no heartbeat.
func (p *pages) serve(t *testing.T) roundTrip {
	return func(request *http.Request) (io.ReadCloser, error) {
		if path.Base(request.URL.Path) == "leases" {
			return sent(t, &coordinationv1.LeaseList{}), nil
		}
		query := request.URL.Query()
		limit, _ := strconv.ParseInt(query.Get("limit"), 10, 64)
		from, _ := strconv.Atoi(query.Get("continue"))
		p.asked = append(p.asked, limit)
		if limit > p.most && (from == 0 || !p.grows) {
			return nil, cmp.Or(p.err, errTooLarge)
		}
		list := &discoveryv1.EndpointSliceList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		count, made := len(p.slices), func(i int) *discoveryv1.EndpointSlice { return p.slices[i] }
		if p.made != nil {
			count, made = p.count, p.made
		}
		to := min(count, from+int(limit))
		for i := from; i < to; i++ {
			list.Items = append(list.Items, *made(i))
		}
		if to < count {
			list.Continue = fmt.Sprint(to)
		}
		return sent(t, list), nil
	}
}

// TestPages: members behind a slow link and members with large slices are listed completely. A few large slices do not make all
// pages small.
func TestPages(t *testing.T) {
	for name, test := range map[string]struct {
		count  int
		server pages
		want   string
	}{
		"slow":  {1000, pages{most: 25, err: errLate, grows: true}, "[100 50 25 25 25 25 25 25 25 25 50 50 50 50 50 50 50 50 100 100 100 100]"},
		"large": {7, pages{most: 2}, "[100 50 25 12 6 3 1 1 1 1 1 1 1]"},
	} {
		for i := range test.count {
			test.server.slices = append(test.server.slices, slice(fmt.Sprintf("s%04d", i), "web", "1"))
		}
		store := (&surroundings{}).west()
		if replace(t, store, &test.server); store.Published() != test.count {
			t.Errorf("%s: got %d slices", name, store.Published())
		}
		if got := fmt.Sprint(test.server.asked); got != test.want {
			t.Errorf("%s: asked for pages of %s", name, got)
		}
	}
}

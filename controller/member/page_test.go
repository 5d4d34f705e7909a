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
	return response, err
}

// answering is a server that answers with an empty page: at once if begin is nil, otherwise when begin is closed.
func answering(t *testing.T, begin <-chan struct{}) roundTrip {
	return func(*http.Request) (io.ReadCloser, error) {
		if begin != nil {
			<-begin
		}
		return sent(t, &discoveryv1.EndpointSliceList{}), nil
	}
}

// drip is a server that answers a byte every 5 s.
func drip(*http.Request) (io.ReadCloser, error) {
	body, in := io.Pipe()
	go func() {
		for {
			<-time.After(5 * time.Second)
			if _, err := in.Write([]byte("k")); err != nil {
				return
			}
		}
	}()
	return body, nil
}

// TestSlowServers: servers that answer a byte at a time, as slowly as they may, delay the list of another member only briefly:
// of times * listsAtOnce servers, each reads at most one page before it.
func TestSlowServers(t *testing.T) {
	for _, times := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			set := (&surroundings{}).west().set
			member := func(server roundTrip) *Member {
				one := (&surroundings{}).west()
				one.set = set
				return connected(t, one, "https://west", server)
			}
			get := func(ctx context.Context, m *Member) error {
				return m.page(ctx, metav1.ListOptions{}, func(*discoveryv1.EndpointSliceList) {})
			}
			ctx, stop := context.WithCancel(t.Context())
			for range times * listsAtOnce {
				go func() {
					for ctx.Err() == nil {
						_ = get(ctx, member(drip))
					}
				}()
			}
			<-time.After(time.Minute)
			began := time.Now()
			err := get(t.Context(), member(answering(t, nil)))
			if took := time.Since(began); err != nil || took > time.Duration(times)*pageWithin {
				t.Errorf("%d times as many: the page of another member took %s: %v", times, took, err)
			}
			stop()
			<-time.After(2 * pageWithin)
		})
	}
}

// TestPagesAreReadInTurn: there are no more pages in memory than turns, and a server that does not answer keeps no member
// waiting.
func TestPagesAreReadInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, never := (&surroundings{}).west().set, make(chan struct{})
		set.turns = make(chan struct{}, 2)
		read := make(chan func(), 10)
		list := func(begin <-chan struct{}) {
			m := (&surroundings{}).west()
			m.set = set
			if err := connected(t, m, "https://west", answering(t, begin)).page(t.Context(), metav1.ListOptions{}, func(*discoveryv1.EndpointSliceList) {
				ctx, end := context.WithCancel(t.Context())
				read <- end
				<-ctx.Done()
			}); err != nil {
				t.Error(err)
			}
		}
		for range 3 {
			go list(never)
		}
		synctest.Wait()
		for range 5 {
			go list(nil)
		}
		for left := 5; left > 0; left-- {
			synctest.Wait()
			if want := min(2, left); len(read) != want || len(set.turns) != want {
				t.Fatalf("with %d left %d pages are held, by %d", left, len(read), len(set.turns))
			}
			(<-read)()
		}
		close(never)
		for range 3 {
			(<-read)()
		}
		if synctest.Wait(); len(set.turns) != 0 {
			t.Errorf("%d turns were not given back", len(set.turns))
		}
	})
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

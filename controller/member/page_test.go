// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

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

// answering is a server that answers an empty page, once begin is closed unless it is nil.
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

// TestSlowServers: servers that answer a byte at a time, for as long as they may and again, hold up the list of another
// member for a moment only: of so many times as many as have a turn at once, each has its page at most once before it.
func TestSlowServers(t *testing.T) {
	for _, times := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			m := (&surroundings{}).west()
			get := func(ctx context.Context, server roundTrip) error {
				return connected(t, m, "https://west", server).page(ctx, metav1.ListOptions{}, func(*discoveryv1.EndpointSliceList) {})
			}
			ctx, stop := context.WithCancel(t.Context())
			for range times * listsAtOnce {
				go func() {
					for ctx.Err() == nil {
						_ = get(ctx, drip)
					}
				}()
			}
			<-time.After(time.Minute)
			began := time.Now()
			err := get(t.Context(), answering(t, nil))
			if took := time.Since(began); err != nil || took > time.Duration(times)*pageWithin {
				t.Errorf("%d times as many: the page of another member took %s: %v", times, took, err)
			}
			stop()
			<-time.After(2 * pageWithin)
		})
	}
}

// TestPagesAreReadInTurn: so many pages of lists are held at once and no more,
// and a server that does not answer keeps no member waiting.
func TestPagesAreReadInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, never := (&surroundings{}).west(), make(chan struct{})
		m.set.turns = make(chan struct{}, 2)
		read := make(chan func(), 10)
		list := func(begin <-chan struct{}) {
			c := connected(t, m, "https://west", answering(t, begin))
			if err := c.page(t.Context(), metav1.ListOptions{}, func(*discoveryv1.EndpointSliceList) {
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
			if want := min(2, left); len(read) != want || len(m.set.turns) != want {
				t.Fatalf("with %d left %d pages are held, by %d", left, len(read), len(m.set.turns))
			}
			(<-read)()
		}
		close(never)
		for range 3 {
			(<-read)()
		}
		if synctest.Wait(); len(m.set.turns) != 0 {
			t.Errorf("%d turns were not given back", len(m.set.turns))
		}
	})
}

// TestWatchThatNobodyEnds: a watch of which nothing comes any more, also not its end, is closed.
func TestWatchThatNobodyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, seconds, version := time.Now(), "", "1"
		c := connected(t, (&surroundings{}).west(), "https://west", roundTrip(func(request *http.Request) (io.ReadCloser, error) {
			seconds = request.URL.Query().Get("timeoutSeconds")
			body, _ := io.Pipe()
			return body, nil
		}))
		nobody := func(*discoveryv1.EndpointSlice) { t.Error("there is an event") }
		if err := watchFrom(t.Context(), c, watchedSlices, c.slices, &version, nobody, nobody); err != nil {
			t.Error(err)
		}
		if timeout, _ := time.ParseDuration(seconds + "s"); time.Since(began) != timeout+patience || timeout < 5*time.Minute {
			t.Errorf("a watch of %s s lasted %s", seconds, time.Since(began))
		}
	})
}

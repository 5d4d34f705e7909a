// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// roundTrip is a server.
type roundTrip func(*http.Request) (io.ReadCloser, error)

// RoundTrip implements http.RoundTripper.
func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := r(request)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeProtobuf}}, Body: body}, err
}

// ask sends a request to a server, as the limits of a member allow.
func ask(ctx context.Context, query string, server roundTrip) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://west/"+query, http.NoBody)
	if err != nil {
		return nil, err
	}
	return (&frameLimiter{base: server, event: 1}).RoundTrip(request)
}

// answering is a server that answers an empty page, once begin is closed unless it is nil.
func answering(t *testing.T, begin <-chan struct{}) roundTrip {
	page := encode(t, &discoveryv1.EndpointSliceList{})
	return func(*http.Request) (io.ReadCloser, error) {
		if begin != nil {
			<-begin
		}
		return io.NopCloser(bytes.NewReader(page)), nil
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
			of := make(chan struct{}, listsAtOnce)
			get := func(ctx context.Context, server roundTrip) error {
				ours := &turn{of: of}
				defer ours.end()
				response, err := ask(ours.with(ctx), "", server)
				if err == nil {
					response.Body.Close()
				}
				return err
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
		of, never := make(chan struct{}, 2), make(chan struct{})
		read := make(chan *turn, 10)
		list := func(begin <-chan struct{}) {
			ours := &turn{of: of}
			response, err := ask(ours.with(t.Context()), "", answering(t, begin))
			if err != nil {
				t.Error(err)
				return
			}
			response.Body.Close()
			read <- ours
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
			if want := min(2, left); len(read) != want || len(of) != want {
				t.Fatalf("with %d left %d pages are held, by %d", left, len(read), len(of))
			}
			held := <-read
			held.end()
			held.end() // once is enough
		}
		close(never)
		for range 3 {
			(<-read).end()
		}
		if len(of) != 0 {
			t.Errorf("%d turns were not given back", len(of))
		}
	})
}

// TestWatchThatNobodyEnds: a watch of which nothing comes any more, also not its end, is closed.
func TestWatchThatNobodyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		response, err := ask(t.Context(), "?watch=true&timeoutSeconds=300", func(*http.Request) (io.ReadCloser, error) {
			body, _ := io.Pipe()
			return body, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if got, err := io.ReadAll(response.Body); err == nil || len(got) > 0 {
			t.Errorf("read %d bytes, and %v", len(got), err)
		}
		if lasted := time.Since(began); lasted != 5*time.Minute+patience {
			t.Errorf("it lasted %s", lasted)
		}
	})
}

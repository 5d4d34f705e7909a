// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"context"
	"fmt"
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

// answering is a server that answers the page, once begin is closed.
func answering(begin <-chan struct{}, page []byte) roundTrip {
	return func(*http.Request) (io.ReadCloser, error) {
		<-begin
		return io.NopCloser(bytes.NewReader(page)), nil
	}
}

// drip is a body of which a byte comes every 5 s.
type drip struct{ closed chan struct{} }

func (d drip) Read(p []byte) (int, error) {
	select {
	case <-d.closed:
		return 0, io.ErrClosedPipe
	case <-time.After(5 * time.Second):
		return copy(p, "k"), nil
	}
}

func (d drip) Close() error {
	select {
	case <-d.closed:
	default:
		close(d.closed)
	}
	return nil
}

// TestSlowServers: servers that answer a byte at a time, for as long as they may and again, hold up the list of another
// member for a moment only.
func TestSlowServers(t *testing.T) {
	for _, times := range []int{1, 2} {
		t.Run(fmt.Sprint(times), func(t *testing.T) { slowServers(t, times) })
	}
}

// slowServers: of so many times as many slow servers as have a turn at once, each has its page at most once before another.
func slowServers(t *testing.T, times int) {
	page := encode(t, &discoveryv1.EndpointSliceList{})
	synctest.Test(t, func(t *testing.T) {
		of := make(chan struct{}, listsAtOnce)
		get := func(ctx context.Context, host string, server roundTrip) error {
			ours := &turn{of: of}
			defer ours.end()
			request, err := http.NewRequestWithContext(ours.with(ctx), http.MethodGet, "https://"+host+"/", http.NoBody)
			if err != nil {
				return err
			}
			response, err := (&frameLimiter{base: server}).RoundTrip(request)
			if err == nil {
				response.Body.Close()
			}
			return err
		}
		ctx, stop := context.WithCancel(t.Context())
		for i := range times * listsAtOnce {
			go func() {
				for ctx.Err() == nil {
					_ = get(ctx, fmt.Sprint("slow-", i), func(*http.Request) (io.ReadCloser, error) { return drip{make(chan struct{})}, nil })
				}
			}()
		}
		<-time.After(time.Minute)
		began := time.Now()
		now := make(chan struct{})
		close(now)
		err := get(t.Context(), "honest", answering(now, page))
		if took := time.Since(began); err != nil || took > time.Duration(times)*pageWithin {
			t.Errorf("the page of another member took %s: %v", took, err)
		}
		stop()
		<-time.After(2 * pageWithin)
	})
}

// TestPagesAreReadInTurn: so many pages of lists are held at once and no more,
// and a server that does not answer keeps no member waiting.
func TestPagesAreReadInTurn(t *testing.T) {
	page := encode(t, &discoveryv1.EndpointSliceList{})
	synctest.Test(t, func(t *testing.T) {
		of := make(chan struct{}, 2)
		answer, never := make(chan struct{}), make(chan struct{})
		close(answer)
		read := make(chan *turn, 10)
		list := func(begin chan struct{}) {
			ours := &turn{of: of}
			request, err := http.NewRequestWithContext(ours.with(t.Context()), http.MethodGet, "https://west/",
				http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			response, err := (&frameLimiter{base: answering(begin, page)}).RoundTrip(request)
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
			go list(answer)
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
		body, _ := io.Pipe()
		server := roundTrip(func(*http.Request) (io.ReadCloser, error) { return body, nil })
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://west/?watch=true&timeoutSeconds=300", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		response, err := (&frameLimiter{base: server, event: 1}).RoundTrip(request)
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

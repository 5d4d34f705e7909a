// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// answers is a server that begins to answer once begin is closed.
type answers struct {
	begin chan struct{}
	page  []byte
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	<-a.begin
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeProtobuf}},
		Body: io.NopCloser(bytes.NewReader(a.page)),
	}, nil
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
			response, err := (&frameLimiter{base: answers{begin, page}}).RoundTrip(request)
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

// A drip is a body of which a byte arrives every five seconds, until it is closed.
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

// TestSlowPagesKeepNoTurn: servers that send their pages slowly keep another member waiting for a moment only.
func TestSlowPagesKeepNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := make(chan struct{}, 2)
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		get := func(body io.ReadCloser) error {
			page := turn{of: of}
			defer page.end()
			request, err := http.NewRequestWithContext(page.with(ctx), http.MethodGet, "https://west/", http.NoBody)
			if err != nil {
				return err
			}
			response, err := (&frameLimiter{base: whole{body}}).RoundTrip(request)
			if err == nil {
				response.Body.Close()
			}
			return err
		}
		slow := make(chan error, cap(of))
		for range cap(of) {
			go func() { slow <- get(drip{make(chan struct{})}) }()
		}
		synctest.Wait()
		began := time.Now()
		err := get(io.NopCloser(bytes.NewReader(encode(t, &discoveryv1.EndpointSliceList{}))))
		if took := time.Since(began); err != nil || took > pageWithin {
			t.Errorf("the page of another member took %s: %v", took, err)
		}
		for range cap(of) {
			if err := <-slow; !errors.Is(err, errSlow) {
				t.Errorf("a slow page: %v", err)
			}
		}
	})
}

// whole is a server with one answer.
type whole struct{ body io.ReadCloser }

func (w whole) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {runtime.ContentTypeProtobuf}}, Body: w.body,
	}, nil
}

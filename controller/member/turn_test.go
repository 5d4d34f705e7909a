// SPDX-License-Identifier: Apache-2.0

package member

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

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

// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// TestOneConnection: requests that last at the same time share one HTTP/2
// connection, and another credential for the same server does not share it.
func TestOneConnection(t *testing.T) {
	var connections sync.Map
	var together sync.WaitGroup
	together.Add(2)
	server := listening(t, func(w http.ResponseWriter, r *http.Request) {
		connections.Store(r.RemoteAddr, r.ProtoMajor)
		if r.URL.Path == "/watch" {
			// The client has the headers then, whether or not Flush returns while the stream lasts.
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	config := credentialOf(server).Config
	made := func() (count int) {
		connections.Range(func(_, protocol any) bool { count++; return protocol == 2 })
		return count
	}

	client, closeConnections, err := newHTTPClient(config, patience)
	if err != nil {
		t.Fatal(err)
	}
	request(t, client, server.URL+"/") // the connection is there
	ctx, cancel := context.WithCancel(t.Context())
	var watches sync.WaitGroup
	for range 2 {
		watches.Go(func() {
			watch, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/watch", http.NoBody)
			if err != nil {
				t.Error(err)
				return
			}
			response, err := client.Do(watch)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			together.Done()
			<-ctx.Done()
		})
	}
	together.Wait()
	if got := made(); got != 1 {
		t.Errorf("got %d connections, want 1", got)
	}
	cancel()
	watches.Wait()
	closeConnections()

	other, closeOther, err := newHTTPClient(config, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer closeOther()
	request(t, other, server.URL+"/")
	if got := made(); got != 2 {
		t.Errorf("got %d connections, want another one for another life", got)
	}
}

// TestNoRedirect: a member cannot send the credential elsewhere.
func TestNoRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	client, closeConnections, err := newHTTPClient(&rest.Config{Host: server.URL, BearerToken: "t"}, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConnections()
	if got := request(t, client, server.URL); got != http.StatusTemporaryRedirect {
		t.Errorf("got %d", got)
	}
}

func TestBadCredentials(t *testing.T) {
	for name, config := range map[string]*rest.Config{
		"a CA that is none":   {TLSClientConfig: rest.TLSClientConfig{CAData: []byte("x")}},
		"a wrong certificate": {TLSClientConfig: rest.TLSClientConfig{CertData: []byte("x"), KeyData: []byte("y")}},
		"a token and a login": {BearerToken: "t", Username: "u", Password: "p"},
	} {
		if _, _, err := newHTTPClient(config, patience); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func request(t *testing.T, client *http.Client, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

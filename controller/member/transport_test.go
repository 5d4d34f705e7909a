// SPDX-License-Identifier: Apache-2.0

package member

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
)

// TestNoRedirect: a member cannot send the credential elsewhere.
func TestNoRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	client, err := newHTTPClient(&rest.Config{Host: server.URL, BearerToken: "t"})
	must(t, err)
	if got := request(t, client, server.URL); got != http.StatusTemporaryRedirect {
		t.Errorf("got %d", got)
	}
}

func request(t *testing.T, client *http.Client, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	must(t, err)
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	return response.StatusCode
}

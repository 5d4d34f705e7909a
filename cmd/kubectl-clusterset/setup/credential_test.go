// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestProxyThatRefusesTokens reaches the source through a proxy that lets the
// user in, and no service account.
func TestProxyThatRefusesTokens(t *testing.T) {
	proxy := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case request.Header.Get("Authorization") != "Bearer of-the-user":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","message":"Unauthorized","code":401}`)
		case strings.HasSuffix(request.URL.Path, "/token"):
			fmt.Fprint(w, `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"of-the-reader"}}`)
		default:
			fmt.Fprint(w, `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"clusterset-member-west","uid":"1"}}`)
		}
	}))
	defer proxy.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	source, err := cluster.FromConfig(&rest.Config{
		Host: proxy.URL, BearerToken: "of-the-user",
		TLSClientConfig: rest.TLSClientConfig{CAData: authority},
	}, "admin@east", system)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	p := &peering{
		Options: Options{Teller: cluster.Teller{Out: &said, Results: io.Discard, Timeout: 50 * time.Millisecond}},
		source:  source, is: cluster.Identity{ID: "east"}, readerID: "west",
	}
	if _, _, err := p.issue(t.Context(), Address{Server: proxy.URL}, nil); err == nil ||
		!strings.Contains(err.Error(), "if this is a proxy that rejects service account tokens, set the address of the API server with --server admin@east=https://") {
		t.Errorf("the readers are to use the proxy: got %v", err)
	}
	address := Address{Server: "https://10.0.0.1:6443", Name: "kubernetes", Proxy: "http://10.0.0.2:3128"}
	for name, kept := range map[string][]byte{"of the user": nil, "of the Secret": bytes.Clone(authority[:len(authority)-1])} {
		said.Reset()
		made, _, err := p.issue(t.Context(), address, kept)
		if err != nil || !strings.Contains(said.String(), "continuing, because west uses https://10.0.0.1:6443") {
			t.Errorf("the readers are to use another address: got %v: %s", err, said.String())
			continue
		}
		want := authority
		if kept != nil {
			want = kept
		}
		credential, err := member.ParseKubeconfig(made)
		if err != nil || !bytes.Equal(credential.Config.CAData, want) {
			t.Errorf("the authority is not that %s: %v", name, err)
		} else if got := own(credential.Config); got != address {
			t.Errorf("the address is %+v, want %+v", got, address)
		}
	}
}

// TestTokenWithoutRights names the missing right and its remedy, before the token replaces another.
func TestTokenWithoutRights(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case request.Header.Get("Authorization") == "Bearer of-the-reader" && strings.Contains(request.URL.Path, "endpointslices"):
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"cannot list endpointslices","code":403}`)
		case strings.HasSuffix(request.URL.Path, "/token"):
			fmt.Fprint(w, `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"of-the-reader"}}`)
		default:
			fmt.Fprint(w, `{"metadata":{"name":"clusterset-member-west","uid":"1"}}`)
		}
	}))
	defer server.Close()
	source, err := cluster.FromConfig(&rest.Config{
		Host: server.URL, BearerToken: "of-the-user", TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}, "admin@east", system)
	if err != nil {
		t.Fatal(err)
	}
	reader := joined("west", "east")
	p := &peering{
		Options: Options{Teller: cluster.Teller{Out: io.Discard, Results: io.Discard, Timeout: 50 * time.Millisecond}},
		reader:  reader, readerID: "west", source: source, is: cluster.Identity{ID: "east"},
	}
	err = p.give(t.Context())
	if err == nil || !strings.Contains(err.Error(), "cannot list endpointslices: restore it with `helm upgrade`") {
		t.Errorf("got %v", err)
	}
	for _, action := range reader.Kube.(*fake.Clientset).Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" {
			t.Errorf("west: %s of %s", verb, action.GetResource().Resource)
		}
	}
}

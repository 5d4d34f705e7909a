// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"encoding/pem"
	"fmt"
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

// issuer returns the peering by which west reads east, whose API server issues the token of-the-reader, and what it says. The
// server answers a request of a token with a code and a message if refuses returns them.
func issuer(t *testing.T, refuses func(token, path string) (int, string)) (*peering, *bytes.Buffer) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		code, message := refuses(strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer "), request.URL.Path)
		switch {
		case code != 0:
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":%q,"code":%d}`,
				http.StatusText(code), message, code)
		case strings.HasSuffix(request.URL.Path, "/token"):
			fmt.Fprint(w, `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"of-the-reader"}}`)
		default:
			fmt.Fprint(w, `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"clusterset-member-west","uid":"1"}}`)
		}
	}))
	t.Cleanup(server.Close)
	source, err := cluster.FromConfig(&rest.Config{
		Host: server.URL, BearerToken: "of-the-user", TLSClientConfig: rest.TLSClientConfig{
			CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
	}, "admin@east", system)
	if err != nil {
		t.Fatal(err)
	}
	said := &bytes.Buffer{}
	o := quiet(50 * time.Millisecond)
	o.Teller.Out = said
	return &peering{Options: o, source: source, is: cluster.Identity{ID: "east"}, readerID: "west"}, said
}

// TestProxyThatRefusesTokens reaches the source through a proxy that lets the
// user in, and no service account.
func TestProxyThatRefusesTokens(t *testing.T) {
	p, said := issuer(t, func(token, _ string) (int, string) {
		if token != "of-the-user" {
			return http.StatusUnauthorized, "Unauthorized"
		}
		return 0, ""
	})
	authority := p.source.Config.CAData
	if _, _, err := p.issue(t.Context(), Address{Server: p.source.Config.Host}, nil); err == nil ||
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
	p, _ := issuer(t, func(token, path string) (int, string) {
		if token == "of-the-reader" && strings.Contains(path, "endpointslices") {
			return http.StatusForbidden, "cannot list endpointslices"
		}
		return 0, ""
	})
	p.reader = joined("west", "east")
	err := p.give(t.Context())
	if err == nil || !strings.Contains(err.Error(), "cannot list endpointslices: restore it with `helm upgrade`") {
		t.Errorf("got %v", err)
	}
	for _, action := range p.reader.Kube.(*fake.Clientset).Actions() {
		if verb := action.GetVerb(); verb != "get" && verb != "list" {
			t.Errorf("west: %s of %s", verb, action.GetResource().Resource)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package join

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// TestKubeconfigOfTheReader has the address and the authority for the reader, whatever the user's are.
func TestKubeconfigOfTheReader(t *testing.T) {
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
	p := &peering{source: source, sourceID: "east", readerID: "west"}
	address := Address{Server: "https://10.0.0.1:6443", Name: "kubernetes", Proxy: "http://10.0.0.2:3128"}
	for name, kept := range map[string][]byte{"of the user": nil, "of the Secret": bytes.Clone(authority[:len(authority)-1])} {
		made, _, err := p.issue(t.Context(), address, kept)
		if err != nil {
			t.Fatal(err)
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

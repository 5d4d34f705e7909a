// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/controller/member"
)

// issuer returns the peering by which west reads east, and its output. The API server of east issues the token of-the-reader.
// It answers a request with the code and the message that refuses returns for the token, if any.
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
	authority := filepath.Join(t.TempDir(), "ca.crt")
	err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600)
	must(t, err)
	source, err := cluster.FromConfig(&rest.Config{
		Host: server.URL, BearerToken: "of-the-user", TLSClientConfig: rest.TLSClientConfig{CAFile: authority},
	}, "admin@east", system)
	must(t, err)
	said := &bytes.Buffer{}
	o := quiet(50 * time.Millisecond)
	o.Teller.Out = said
	source.ID = "east"
	return &peering{Options: o, source: source, reader: &cluster.Cluster{ID: "west"}}, said
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
	if _, _, err := p.issue(t.Context(), own(p.source.Config)); err == nil ||
		!strings.Contains(err.Error(), "if this is a proxy that rejects service account tokens, set the address of the API server with --server admin@east=https://") {
		t.Errorf("the readers are to use the proxy: got %v", err)
	}
	said.Reset()
	address := own(p.source.Config)
	address.Server, address.TLSServerName, address.ProxyURL = "https://10.0.0.1:6443", "kubernetes", "http://10.0.0.2:3128"
	made, _, err := p.issue(t.Context(), address)
	if err != nil || !strings.Contains(said.String(), "continuing, because west uses https://10.0.0.1:6443") {
		t.Fatalf("the readers are to use another address: got %v: %s", err, said.String())
	}
	credential, err := member.ParseKubeconfig(made)
	if err != nil || len(credential.Config.CAData) == 0 || !reflect.DeepEqual(own(credential.Config), address) {
		t.Errorf("got %v, %s", err, made)
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

// TestReach joins again: the address in the Secret stays, because the reader reaches it, whatever the kubeconfig of the user
// has. The CA in the Secret belongs to its address, even if there is none because a public CA signed the certificate.
func TestReach(t *testing.T) {
	const users, usersProxy = "https://127.0.0.1:6443", "http://proxy.example:8080"
	source := &cluster.Cluster{
		Context: "admin@east", ID: "east",
		Config: &rest.Config{
			Host: users, TLSClientConfig: rest.TLSClientConfig{ServerName: "kubernetes", CAData: []byte("ours")},
			Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.example:8080", User: url.UserPassword("user", "s3cr3t")}),
		},
	}
	secretOf := func(authority, of string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "member-east"}, Data: map[string][]byte{
			cluster.KubeconfigKey: fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: secret}}],
clusters: [{name: c, cluster: {certificate-authority-data: %q, server: '%s'}}]}`, authority, of),
		}}
	}
	secret := func(of string) *corev1.Secret { return secretOf("dGhlaXJz", of) }
	const keeps, another = "west keeps reading east at ", " (Secret member-east). To use another address, set --server admin@east=https://…\n"
	const same = users + "', tls-server-name: kubernetes, proxy-url: '"
	type address struct{ server, name, proxy, authority string }
	for name, test := range map[string]struct {
		secret  *corev1.Secret
		servers map[string]string
		want    address
		says    string
	}{
		"the first time": {&corev1.Secret{}, nil, address{users, "kubernetes", usersProxy, "ours"}, ""},
		"the first time, by another address": {
			&corev1.Secret{}, map[string]string{"admin@east": "https://10.0.0.1:6443"}, address{"https://10.0.0.1:6443", "kubernetes", "", "ours"}, "",
		},
		"again": {
			secret("https://10.0.0.1:6443"),
			map[string]string{"admin@west": "https://10.0.0.2:6443"},
			address{"https://10.0.0.1:6443", "", "", "theirs"},
			keeps + "https://10.0.0.1:6443" + another,
		},
		"again, with a public certificate": {
			secretOf("", "https://10.0.0.1:6443"), nil,
			address{"https://10.0.0.1:6443", "", "", ""},
			keeps + "https://10.0.0.1:6443" + another,
		},
		"again, by another address": {
			secret("https://10.0.0.1:6443"), map[string]string{"admin@east": "https://10.0.0.3:6443"}, address{"https://10.0.0.3:6443", "kubernetes", "", "ours"}, "",
		},
		"again, by the same address": {secret(same + usersProxy), nil, address{users, "kubernetes", usersProxy, "ours"}, ""},
		"again, with a login to the proxy": {
			secret(same + "http://east:secret@proxy.example:8080"), nil,
			address{users, "kubernetes", "http://east:secret@proxy.example:8080", "ours"},
			"",
		},
		"again, by another proxy": {
			secret(same + "socks5://east:secret@10.0.0.1:1080"), nil,
			address{users, "kubernetes", "socks5://east:secret@10.0.0.1:1080", "theirs"},
			keeps + users + another,
		},
		"a kubeconfig that is refused": {secret("http://10.0.0.1"), nil, address{users, "kubernetes", usersProxy, "ours"}, ""},
	} {
		var said bytes.Buffer
		o := Options{Servers: test.servers, Teller: cluster.Teller{Results: &said}}
		at := (&peering{Options: o, reader: &cluster.Cluster{ID: "west"}, source: source, secret: test.secret}).reach()
		got := address{at.Server, at.TLSServerName, at.ProxyURL, string(at.CertificateAuthorityData)}
		if got != test.want || said.String() != test.says {
			t.Errorf("%s: got %+v, want %+v; it says %q, want %q", name, got, test.want, said.String(), test.says)
		}
	}
}

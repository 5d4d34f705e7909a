// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// TestReach joins again: the address in the Secret is the one that the reader reaches, whatever the kubeconfig of the user has.
// The authority in the Secret belongs to its address.
func TestReach(t *testing.T) {
	const users, usersProxy = "https://127.0.0.1:6443", "http://proxy.example:8080"
	source := &cluster.Cluster{
		Context: "admin@east",
		Config: &rest.Config{
			Host: users, TLSClientConfig: rest.TLSClientConfig{ServerName: "kubernetes"},
			Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.example:8080", User: url.UserPassword("user", "s3cr3t")}),
		},
	}
	secret := func(of string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "member-east"}, Data: map[string][]byte{
			cluster.KubeconfigKey: fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c,
contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {token: secret}}],
clusters: [{name: c, cluster: {server: '%s', certificate-authority-data: dGhlaXJz}}]}`, of),
		}}
	}
	const keeps, another = "west keeps reading east at ", " through http://proxy.example:8080. To use another address, set --server admin@east=https://…\n"
	const same = users + "', tls-server-name: kubernetes, proxy-url: '"
	for name, test := range map[string]struct {
		secret  *corev1.Secret
		servers map[string]string
		want    Address
		says    string
	}{
		"the first time": {&corev1.Secret{}, nil, Address{users, "kubernetes", usersProxy}, ""},
		"the first time, by another address": {
			&corev1.Secret{}, map[string]string{"admin@east": "https://10.0.0.1:6443"}, Address{"https://10.0.0.1:6443", "kubernetes", ""}, "",
		},
		"again": {
			secret("https://10.0.0.1:6443"),
			map[string]string{"admin@west": "https://10.0.0.2:6443"},
			Address{"https://10.0.0.1:6443", "", ""},
			keeps + "https://10.0.0.1:6443 (Secret member-east) instead of https://127.0.0.1:6443" + another,
		},
		"again, by another address": {
			secret("https://10.0.0.1:6443"), map[string]string{"admin@east": "https://10.0.0.3:6443"}, Address{"https://10.0.0.3:6443", "kubernetes", ""}, "",
		},
		"again, by the same address": {secret(same + usersProxy), nil, Address{users, "kubernetes", usersProxy}, ""},
		"again, with a login to the proxy": {
			secret(same + "http://east:secret@proxy.example:8080"), nil, Address{users, "kubernetes", "http://east:secret@proxy.example:8080"}, "",
		},
		"again, by another proxy": {
			secret(same + "socks5://east:secret@10.0.0.1:1080"), nil,
			Address{users, "kubernetes", "socks5://east:secret@10.0.0.1:1080"},
			keeps + "https://127.0.0.1:6443 through socks5://east:xxxxx@10.0.0.1:1080 (Secret member-east) instead of https://127.0.0.1:6443" + another,
		},
		"a kubeconfig that is refused": {secret("http://10.0.0.1"), nil, Address{users, "kubernetes", usersProxy}, ""},
		"none":                         {&corev1.Secret{}, nil, Address{users, "kubernetes", usersProxy}, ""},
	} {
		var said bytes.Buffer
		o := Options{Servers: test.servers, Teller: cluster.Teller{Results: &said}}
		got, authority := (&peering{Options: o, readerID: "west", source: source, is: cluster.Identity{ID: "east"}, secret: test.secret}).reach()
		if got != test.want || said.String() != test.says || (string(authority) == "theirs") != (test.says != "") {
			t.Errorf("%s: got %+v, authority %q, want %+v; it says %q, want %q", name, got, authority, test.want, said.String(), test.says)
		}
	}
}

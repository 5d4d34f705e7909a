// SPDX-License-Identifier: Apache-2.0

package join

import (
	"encoding/base64"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

func TestLife(t *testing.T) {
	kubeconfig := func(token string) string {
		return `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://127.0.0.1"}}], users: [{name: u, user: {token: "` + token + `"}}]}`
	}
	claims := func(text string) string { return "h." + base64.RawURLEncoding.EncodeToString([]byte(text)) + ".s" }
	for name, test := range map[string]struct {
		kubeconfig string
		issued     time.Time
		expires    time.Time
	}{
		"a token that ends": {
			kubeconfig(claims(`{"iat":1795176000,"exp":1795262400}`)), time.Unix(1795176000, 0),
			time.Unix(1795262400, 0),
		},
		"one that does not":     {kubeconfig(claims(`{"iss":"kubernetes/serviceaccount"}`)), time.Time{}, time.Time{}},
		"no token of this kind": {kubeconfig("secret"), time.Time{}, time.Time{}},
		"no JSON":               {kubeconfig(claims("{")), time.Time{}, time.Time{}},
		"no base64":             {kubeconfig("a.?.b"), time.Time{}, time.Time{}},
		"no kubeconfig":         {"{", time.Time{}, time.Time{}},
	} {
		if issued, expires := Life([]byte(test.kubeconfig)); !issued.Equal(test.issued) ||
			!expires.Equal(test.expires) {
			t.Errorf("%s: got %s to %s, want %s to %s", name, issued, expires, test.issued, test.expires)
		}
	}
}

func TestLoopback(t *testing.T) {
	for server, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://localhost:6443": true, "https://[::1]:6443": true,
		"https://10.0.0.1:6443": false, "https://api.example.org": false, "://": false,
	} {
		if got := Loopback(server); got != want {
			t.Errorf("%s: got %v, want %v", server, got, want)
		}
	}
}

func TestTarget(t *testing.T) {
	clusters := []*cluster.Cluster{{Context: "admin@east"}, {Context: "east"}}
	identities := []cluster.Identity{{ID: "east"}, {ID: "west"}}
	for name, want := range map[string]string{
		"east":       "east", // the id, rather than the context of west
		"admin@east": "east", "west": "west", "lost": "lost",
	} {
		if got := target(name, clusters, identities); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// TestOldest uses the Secret that the controller uses.
func TestOldest(t *testing.T) {
	secret := func(name string, second int) corev1.Secret {
		return corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(int64(second),
			0)}}
	}
	if got := oldest([]corev1.Secret{
		secret("c", 2), secret("b", 1), secret("a", 2),
		secret("a-older", 1),
	}).Name; got != "a-older" {
		t.Errorf("got %s", got)
	}
}

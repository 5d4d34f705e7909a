// SPDX-License-Identifier: Apache-2.0

package join

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

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

// SPDX-License-Identifier: Apache-2.0

package join

import (
	"testing"

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

// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

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
	east, west := joined("east"), joined("west")
	west.Context = "east"
	o := Options{Clusters: []*cluster.Cluster{east, west}}
	for name, want := range map[string]string{
		"east":       "east", // the id, rather than the context of west
		"admin@east": "east", "west": "west", "lost": "lost",
	} {
		if got, _, err := o.target(t.Context(), name); err != nil || got != want {
			t.Errorf("%s: got %s, want %s: %v", name, got, want, err)
		}
	}
}

// TestJoinWaitsForTheControllers, because it usually follows their installation.
func TestJoinWaitsForTheControllers(t *testing.T) {
	east, west := joined("east"), joined("west")
	east.Config, west.Config = &rest.Config{}, &rest.Config{}
	if err := east.Kube.CoordinationV1().Leases(system).Delete(t.Context(), cluster.HeartbeatLease, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err := Join(t.Context(), quiet(time.Millisecond, east, west))
	if !errors.Is(err, cluster.ErrTimeout) || !strings.Contains(err.Error(), "context admin@east: clusterset-controller has never run") {
		t.Errorf("got %v", err)
	}
}

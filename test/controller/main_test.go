// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/test/audit"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// pairs are those clusters, east and west, that no test has just now. As many tests as there are pairs run at once.
var pairs = make(chan func(testing.TB) []*controlplane.Cluster, 2)

func init() {
	for range cap(pairs) {
		pairs <- controlplanetest.Shared(
			controlplane.Options{Name: "east", Zones: []string{}, APIServerArgs: audit.Args()},
			// Services have one family there, too, unless they ask for both.
			controlplane.Options{
				Name: "west", Zones: []string{}, APIServerArgs: audit.Args(),
				IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
			},
		)
	}
}

// pair returns clusters that the test has for itself until it ends.
func pair(t testing.TB) (east, west *controlplane.Cluster) {
	t.Helper()
	start := <-pairs
	t.Cleanup(func() { pairs <- start })
	clusters := start(t)
	return clusters[0], clusters[1]
}

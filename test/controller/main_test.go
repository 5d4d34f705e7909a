// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"sync"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/audit"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

func TestMain(m *testing.M) { controlplanetest.Main(m) }

// pairs are the pairs of clusters, east and west, that no test uses at the moment. The pair that was returned last is
// reused first, so that no more pairs are started than run at once.
var pairs = struct {
	sync.Mutex
	sync.Cond
	free []func(testing.TB) []*controlplane.Cluster
}{}

func init() {
	pairs.L = &pairs.Mutex
	for range 6 {
		pairs.free = append(pairs.free, controlplanetest.Shared(
			controlplane.Options{Name: "east", APIServerArgs: audit.Args()},
			// In west, too, Services have a single family unless they ask for both.
			controlplane.Options{Name: "west", APIServerArgs: audit.Args(), DualStack: true},
		))
	}
}

// take returns the clusters of n pairs, which the test uses exclusively until it ends. It waits until all of them are free.
func take(t testing.TB, n int) (clusters []*controlplane.Cluster) {
	pairs.Lock()
	for len(pairs.free) < n {
		pairs.Wait()
	}
	rest := len(pairs.free) - n
	taken := slices.Clone(pairs.free[rest:])
	pairs.free = pairs.free[:rest]
	pairs.Unlock()
	t.Cleanup(func() {
		pairs.Lock()
		defer pairs.Unlock()
		pairs.free = append(pairs.free, taken...)
		pairs.Broadcast()
	})
	for _, start := range taken {
		clusters = append(clusters, start(t)...)
	}
	return clusters
}

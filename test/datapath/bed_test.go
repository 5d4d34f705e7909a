// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/programs"
	"github.com/clusterset-dns/clusterset-dns/test/kubelet"
)

// bed has three joined clusters with nodes that carry packets.
type bed struct {
	mode              string // of kube-proxy
	networks          bool   // each cluster has its own network; nodes reach those of other clusters, and masquerade pods
	programs          string // the folder of the programs built from this checkout
	east, west, north *cluster
}

// zones are the zones of the nodes, in the order of the nodes.
var zones = map[string][]string{"east": {"a", "b"}, "west": {"b", "c"}, "north": {"c"}}

// newBed starts clusters, and joins them. Everything stops with the test.
func newBed(t *testing.T, mode string, networks bool) *bed {
	folder, err := programs.Folder()
	must(t, err)
	b := &bed{mode: mode, networks: networks, programs: folder}
	options := make([]controlplane.Options, 0, len(zones))
	for _, name := range []string{"east", "west", "north"} {
		options = append(options, controlplane.Options{
			Name:      name,
			DualStack: true,
			Zones:     zones[name],
			// The test runs in its own network namespace.
			APIServerArgs: []string{"--bind-address=0.0.0.0"},
		})
	}
	if b.networks {
		separate(options)
	}
	planes := controlplanetest.Start(t, options...)
	for _, plane := range planes {
		kubelet.Start(t, kubelet.Options{Cluster: plane})
	}
	b.east, b.west, b.north = newCluster(t, b, planes[0]), newCluster(t, b, planes[1]), newCluster(t, b, planes[2])
	for _, c := range b.all() {
		for _, other := range b.all() {
			if other != c {
				must(t, c.Join(t.Context(), other.Name(), other.credential(t, system, "clusterset-member")))
			}
		}
	}
	return b
}

func (b *bed) all() []*cluster { return []*cluster{b.east, b.west, b.north} }

func (b *bed) program(name string) string { return filepath.Join(b.programs, name) }

// namespace creates a namespace for the test in each of the clusters, and returns its name.
func (b *bed) namespace(t testing.TB) string {
	name := fmt.Sprintf("test-%x", time.Now().UnixNano())
	for _, c := range b.all() {
		c.apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	}
	return name
}

// The usual functions to wait, fail and run programs.
var (
	eventually = controlplanetest.Eventually
	must       = controlplanetest.Must
)

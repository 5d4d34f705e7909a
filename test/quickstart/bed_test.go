// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/quickstart/live"
)

// registry is the one of the pages.
const registry = "registry.example.org"

type cluster = live.Cluster

// A bed is the clusters of the pages, and a user in the root directory of the repository.
type bed struct {
	*live.Bed
	east, west, north *cluster
}

func newBed(t *testing.T) *bed {
	t.Helper()
	programs, version := os.Getenv(programsVariable), appVersion(t)
	image := func(name string) string { return registry + "/clusterset-dns/" + name + ":" + version }
	b := &bed{Bed: live.New(t, live.Options{
		Clusters: []string{"east", "west", "north"}, Router: router,
		Images: map[string]string{
			image("clusterset-controller"): filepath.Join(programs, "images", "clusterset-controller"),
			image("coredns"):               filepath.Join(programs, "images", "coredns"),
			image("coredns-slim"):          filepath.Join(programs, "slim", "coredns"),
			live.StockImage:                filepath.Join(programs, "stock", "coredns"),
		},
		Addresses: func(pod *corev1.Pod) []netip.Addr {
			if pod.Labels["k8s-app"] == "node-local-dns" {
				return []netip.Addr{netip.MustParseAddr(nodeLocalAddress)}
			}
			return nil
		},
		Directory: root,
		Path:      []string{filepath.Join(programs, "user")},
	})}
	b.east, b.west, b.north = b.Clusters[0], b.Clusters[1], b.Clusters[2]
	return b
}

// appVersion is the version of the programs that the chart installs.
func appVersion(t testing.TB) string {
	t.Helper()
	chart, err := os.ReadFile(filepath.Join(root, "deploy", "chart", "Chart.yaml"))
	must(t, err)
	match := regexp.MustCompile(`(?m)^appVersion: (\S+)$`).FindSubmatch(chart)
	if match == nil {
		t.Fatal("the chart has no appVersion")
	}
	return string(match[1])
}

// As all packages wait and fail.
var (
	eventually = controlplanetest.Eventually
	must       = controlplanetest.Must
)

// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/quickstart/live"
)

// registry is the one of the pages.
const registry = "registry.example.org"

type cluster = live.Cluster

// A bed is the clusters of the pages, and a user with the files of two releases.
type bed struct {
	*live.Bed
	east, west, north *cluster
	clients           map[*cluster]*live.Client
	before, after     release
	programs          string // of the user, without kubectl-clusterset
}

func newBed(t *testing.T) *bed {
	t.Helper()
	folder, checkout := os.Getenv(folderVariable), absolute(t, root)
	b := &bed{
		before: open(t, filepath.Join(folder, "before")), after: open(t, filepath.Join(folder, "after")),
		programs: filepath.Join(folder, "user"), clients: map[*cluster]*live.Client{},
	}
	options := live.Options{
		Clusters: []string{"east", "west", "north"}, Router: router,
		Images: map[string]string{live.StockImage: filepath.Join(folder, "stock", "coredns")},
		Files:  map[string]map[string]string{},
		Addresses: func(pod *corev1.Pod) []netip.Addr {
			if pod.Labels["k8s-app"] == "node-local-dns" {
				return []netip.Addr{netip.MustParseAddr(nodeLocalAddress)}
			}
			return nil
		},
		Directory: t.TempDir(), Path: []string{b.programs}, Hidden: checkout,
	}
	for _, r := range []release{b.before, b.after} {
		programs, files := r.pull(t)
		for name, program := range programs {
			for _, name := range []string{name, mirrored(name)} {
				options.Images[name] = program
			}
			options.Files[name], options.Files[mirrored(name)] = files[name], files[name]
		}
	}
	b.Bed = live.New(t, options)
	b.east, b.west, b.north = b.Clusters[0], b.Clusters[1], b.Clusters[2]
	for _, c := range b.Clusters {
		b.clients[c] = c.NewClient(t)
	}
	return b
}

// mirrored is the name of an image in the registry of the pages.
func mirrored(image string) string { return strings.Replace(image, "ghcr.io", registry, 1) }

func absolute(t *testing.T, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(path)
	must(t, err)
	return absolute
}

// use verifies a release, and puts its kubectl-clusterset on the path.
func (b *bed) use(t *testing.T, r release) {
	t.Helper()
	programs := filepath.Join(filepath.Dir(b.programs), r.version)
	must(t, os.Mkdir(programs, 0o700))
	b.Run(t, "! command -v go && test -z \"$(ls -A)\" && test -z \"$(ls -A '"+b.Hidden+"')\"")
	b.Run(t, fmt.Sprintf("cd %s && sha256sum --check checksums.txt && tar -xzf %s -C %s", r.directory, r.archive(), programs))
	// Each file has a checksum, and krew's manifest has that of the archive.
	b.Run(t, fmt.Sprintf("cd %s && for file in *; do test -d $file || test $file = checksums.txt || "+
		"grep -q \"  $file\\$\" checksums.txt; done && grep -A1 %s clusterset.yaml | grep $(sha256sum <%[2]s | cut -d' ' -f1)",
		r.directory, r.archive()))
	b.Path = []string{programs, b.programs}
	if client := b.Run(t, "kubectl clusterset --version"); !strings.Contains(client, r.version) {
		t.Fatalf("the program of release %s says it is %s", r.version, client)
	}
}

// follow runs commands of a page. The chart is that of the first release.
func (b *bed) follow(t *testing.T, commands string) string {
	t.Helper()
	return b.Run(t, strings.ReplaceAll(commands, " deploy/chart ", " "+b.before.chart()+" "))
}

// check holds that all is as it should be.
func (b *bed) check(t *testing.T) {
	t.Helper()
	if report := b.Run(t, "kubectl clusterset check --contexts east,west,north"); !strings.Contains(report, " 0 warnings, 0 failed") {
		t.Errorf("something is wrong:\n%s", report)
	}
}

// As all packages wait and fail.
var (
	eventually = controlplanetest.Eventually
	must       = controlplanetest.Must
)

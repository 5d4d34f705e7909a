// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/quickstart/live"
)

const database, queue = "db.shop.svc.clusterset.local", "queue.shop.svc.clusterset.local"

// A bed is three clusters, and a user with the files of two releases.
type bed struct {
	*live.Bed
	east, west, north *live.Cluster
	clients           map[*live.Cluster]*live.Client
	before, after     release
	programs          string // of the user, without kubectl-clusterset
}

func newBed(t *testing.T) *bed {
	t.Helper()
	folder := os.Getenv(folderVariable)
	b := &bed{
		before: open(t, filepath.Join(folder, "before")), after: open(t, filepath.Join(folder, "after")),
		programs: filepath.Join(folder, "user"), clients: map[*live.Cluster]*live.Client{},
	}
	options := live.Options{
		Clusters: []string{"east", "west", "north"}, Router: router,
		Images:    map[string]string{live.StockImage: filepath.Join(folder, "stock", "coredns")},
		Files:     map[string]map[string]string{},
		Directory: t.TempDir(), Path: []string{b.programs}, Hidden: must(filepath.Abs(root))(t),
	}
	for _, r := range []release{b.before, b.after} {
		programs, files := r.pull(t)
		for name, program := range programs {
			options.Images[name], options.Files[name] = program, files[name]
		}
	}
	b.Bed = live.New(t, options)
	b.east, b.west, b.north = b.Clusters[0], b.Clusters[1], b.Clusters[2]
	for _, c := range b.Clusters {
		b.clients[c] = c.NewClient(t)
	}
	return b
}

// use verifies a release, and puts its kubectl-clusterset on the path.
func (b *bed) use(t *testing.T, r release) {
	t.Helper()
	programs := filepath.Join(filepath.Dir(b.programs), r.version)
	if err := os.Mkdir(programs, 0o700); err != nil {
		t.Fatal(err)
	}
	b.Run(t, "! command -v go && test -z \"$(ls -A)\" && test -z \"$(ls -A '"+b.Hidden+"')\"")
	b.Run(t, fmt.Sprintf("cd %s && sha256sum --check checksums.txt && tar -xzf %s -C %s", r.directory, r.archive(), programs))
	// Each file has a checksum, and krew's manifest has that of the archive.
	b.Run(t, fmt.Sprintf("cd %s && for file in *; do test -d $file || test $file = checksums.txt || "+
		"grep -q \"  $file\\$\" checksums.txt; done && grep -A1 %s clusterset.yaml | grep $(sha256sum <%[2]s | cut -d' ' -f1)",
		r.directory, r.archive()))
	b.Path = []string{programs, b.programs}
	if client := b.Run(t, "kubectl clusterset version --client"); !strings.Contains(client, r.version) {
		t.Fatalf("the program of release %s says it is %s", r.version, client)
	}
}

// check holds that all is as it should be.
func (b *bed) check(t *testing.T) {
	t.Helper()
	report := b.Run(t, "kubectl clusterset check --contexts east,west,north")
	if !strings.Contains(report, " 0 warnings, 0 failed") {
		t.Errorf("something is wrong:\n%s", report)
	}
}

// everywhere waits until the pods of all clusters get the right answers.
func (b *bed) everywhere(t *testing.T) {
	t.Helper()
	for _, c := range b.Clusters {
		b.clients[c].Expect(t, database, c.ImportIPs)
		b.clients[c].Expect(t, queue, live.PodsOf("queue", b.east, b.north))
		b.clients[c].Expect(t, "kubernetes.default.svc.cluster.local", live.Constant(live.Address(c.Cluster)))
	}
}

// TestRelease goes from one release to the next and back to nothing.
func TestRelease(t *testing.T) {
	b := newBed(t)
	for _, step := range []struct {
		name string
		do   func(*testing.T, *bed)
	}{
		{"install", install},
		{"join", join},
		{"dns", enable},
		{"export", export},
		{"upgrade", upgrade},
		{"uninstall", uninstall},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(t, b) }) {
			return // the next ones rest on it
		}
	}
}

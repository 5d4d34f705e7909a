// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

const (
	page, section = "docs/get-started/quickstart.md", "## Three clusters"
	// the instructions to uninstall in one cluster
	uninstallPage, uninstallSection = "docs/operate/install.md", "## Uninstall"

	database, queue = "db.shop.svc.clusterset.local", "queue.shop.svc.clusterset.local"
)

// A step is a block of commands of the page.
type step struct {
	name string
	// command is a text in the block, so that a change of the page must change this test.
	command string
	// then checks the promised result. output is the output of the commands.
	then func(t *testing.T, b *bed, output string)
}

var steps = []step{
	{"install", "helm install clusterset-dns deploy/chart", installed},
	{"join", "kubectl clusterset join east west north", joined},
	{"coredns", "kubectl clusterset coredns enable", enabled},
	{"export", "kubectl clusterset export shop/db --contexts east,west", exported},
	{"explain", "kubectl clusterset explain shop/db", explained},
	{"check", "kubectl clusterset check --contexts east,west,north", checked},
	{"drain", "kubectl clusterset drain west", drained},
	{"undrain", "kubectl clusterset undrain west", undrained},
	{"leave", "kubectl clusterset leave north", left},
	{"leave all", "kubectl clusterset leave east --contexts east,west", uninstalled},
}

// TestQuickstart runs the commands of the page, with an upgrade before clusters leave. In the cleaned clusters it then
// runs the section about joining by hand.
func TestQuickstart(t *testing.T) {
	var known []string
	for _, step := range steps {
		known = append(known, step.command)
	}
	blocks := knownCommands(t, page, section, known)
	b := newBed(t)
	b.use(t, b.before)
	b.run(t, "kubectl clusterset check --pre --contexts east,west,north")
	for i, step := range steps {
		ok := t.Run(step.name, func(t *testing.T) {
			step.then(t, b, b.run(t, strings.ReplaceAll(blocks[i], " deploy/chart ", " "+b.before.chart()+" ")))
		})
		if !ok {
			return // the next steps depend on it
		}
	}
	t.Run("manifest", func(t *testing.T) { testManifest(t, b) })
	t.Run("by hand", func(t *testing.T) { testByHand(t, b) })
}

// TestReadme checks that README.md has the same installation commands as the page, which TestQuickstart runs.
func TestReadme(t *testing.T) {
	known, shown := commands(t, page, section), commands(t, "README.md", "## Install")
	if len(shown) == 0 {
		t.Fatal("README.md shows no commands")
	}
	for _, block := range shown {
		if !slices.Contains(known, block) {
			t.Errorf("%s does not have these commands of README.md:\n%s", page, block)
		}
	}
}

func installed(t *testing.T, b *bed, output string) {
	for _, c := range b.clusters {
		for _, want := range []string{
			"as cluster " + c.Name(), "coredns enable --context",
		} {
			if !strings.Contains(output, want) {
				t.Errorf("the notes do not say %q:\n%s", want, output)
			}
		}
	}
}

func joined(t *testing.T, b *bed, output string) {
	var set struct {
		Clusters []struct {
			Cluster string
			Members []struct {
				Cluster, State string
				Expires        metav1.Time
				Synced         bool
			}
		}
	}
	must(t, json.Unmarshal([]byte(b.run(t, "kubectl clusterset status --wait --contexts east,west,north -o json")), &set))
	if len(set.Clusters) != len(b.clusters) {
		t.Fatalf("status has %+v", set)
	}
	for _, c := range set.Clusters {
		if len(c.Members) != 2 {
			t.Errorf("%s has %d members", c.Cluster, len(c.Members))
		}
		for _, m := range c.Members {
			for _, want := range []string{
				c.Cluster + " has a credential to read " + m.Cluster + ", which expires ", " unless its controller renews it",
				c.Cluster + " receives heartbeats from " + m.Cluster,
			} {
				if !strings.Contains(output, want) {
					t.Errorf("join does not say %q:\n%s", want, output)
				}
			}
			lasts := 30 * 24 * time.Hour
			if m.Cluster == "north" { // its API server limits the lifetime of tokens
				lasts = time.Hour
			}
			if left := time.Until(m.Expires.Time); m.State != "fresh" || !m.Synced || left > lasts || left < lasts-10*time.Minute {
				t.Errorf("%s in %s: %+v", m.Cluster, c.Cluster, m)
			}
		}
	}
	for _, c := range b.clusters {
		b.run(t,
			"kubectl --context "+c.Name()+
				" -n clusterset-dns rollout status deployment/clusterset-controller --timeout 60s")
	}
}

func enabled(t *testing.T, b *bed, _ string) {
	for _, c := range b.clusters {
		c.expectAnswer(t, "kubernetes.default.svc.cluster.local", constant(c.ServiceIP(1)))
		c.expectAnswer(t, database, constant("NXDOMAIN"))
	}
}

func exported(t *testing.T, b *bed, _ string) {
	for _, c := range b.clusters {
		c.expectAnswer(t, database, c.importIPs)
		c.expectAnswer(t, queue, pods("shop", "app=queue", b.east, b.north))
		c.expectAnswer(t, "queue-1.north."+queue, pods("shop", "statefulset.kubernetes.io/pod-name=queue-1", b.north))
	}
	for _, c := range b.clusters {
		b.expectEndpoints(t, c, map[string]string{"east": used, "west": used})
	}
}

func explained(t *testing.T, b *bed, output string) {
	if !strings.Contains(output, "(correct)") || !strings.Contains(output, "queried at pod kube-system/coredns-") {
		t.Errorf("DNS was not asked, or answers something else:\n%s", output)
	}
	addresses, err := pods("shop", "app=db", b.east, b.west)(t.Context())
	must(t, err)
	for _, want := range append(addresses, database) {
		if !strings.Contains(output, want) {
			t.Errorf("it does not tell of %s:\n%s", want, output)
		}
	}
}

func checked(t *testing.T, b *bed, output string) {
	if !strings.Contains(output, " 0 warnings, 0 failed") {
		t.Errorf("something is wrong:\n%s", output)
	}
	t.Run("connectivity", func(t *testing.T) { testConnectivity(t, b) })
}

func drained(t *testing.T, b *bed, _ string) {
	for _, c := range b.clusters {
		b.expectEndpoints(t, c, map[string]string{"east": used, "west": demoted})
		c.expectAnswer(t, database, c.importIPs)
	}
}

func undrained(t *testing.T, b *bed, _ string) {
	for _, c := range b.clusters {
		b.expectEndpoints(t, c, map[string]string{"east": used, "west": used})
	}
	t.Run("upgrade", func(t *testing.T) { testUpgrade(t, b) })
	t.Run("faults", func(t *testing.T) { testFaults(t, b) })
}

func left(t *testing.T, b *bed, _ string) {
	for _, c := range []*cluster{b.east, b.west} {
		c.expectAnswer(t, queue, pods("shop", "app=queue", b.east))
		c.expectAnswer(t, "queue-1.north."+queue, constant("NXDOMAIN"))
		c.expectAnswer(t, database, c.importIPs)
	}
	b.north.expectAnswer(t, queue, pods("shop", "app=queue", b.north))
	b.north.expectAnswer(t, database, constant("NXDOMAIN"))

	t.Run("uninstall", func(t *testing.T) {
		// The controller stops before its work is done, so that objects are left for the commands that remove them.
		b.run(t, "kubectl clusterset export shop/db --contexts north")
		b.expectEndpoints(t, b.north, map[string]string{"north": used})
		b.run(t, `kubectl --context north -n clusterset-dns scale deployment/clusterset-controller --replicas 0
kubectl --context north -n clusterset-dns wait --for delete pod --selector app.kubernetes.io/component=controller --timeout 60s`)
		// Objects that an import owns may be garbage-collected before the commands delete them.
		if !strings.Contains(b.uninstall(t, b.north), `serviceimport.multicluster.x-k8s.io "db" deleted`) {
			t.Error("nothing was left for the commands to remove")
		}
		b.north.expectNothingLeft(t)
	})
	// The other clusters are not affected.
	for _, c := range []*cluster{b.east, b.west} {
		c.expectAnswer(t, queue, pods("shop", "app=queue", b.east))
	}
}

func uninstalled(t *testing.T, b *bed, _ string) {
	for _, c := range []*cluster{b.east, b.west} {
		b.uninstall(t, c)
	}
	for _, c := range b.clusters {
		c.expectAnswer(t, "kubernetes.default.svc.cluster.local", constant(c.ServiceIP(1)))
		c.expectNothingLeft(t)
	}
}

// uninstall runs the page's commands for north in c, and returns their output.
func (b *bed) uninstall(t *testing.T, c *cluster) string {
	var output strings.Builder
	for _, block := range commands(t, uninstallPage, uninstallSection) {
		output.WriteString(b.run(t, strings.ReplaceAll(block, "north", c.Name())))
	}
	return output.String()
}

// knownCommands returns the command blocks of a section, each of which must contain the text with the same index.
func knownCommands(t testing.TB, page, heading string, texts []string) []string {
	t.Helper()
	all := commands(t, page, heading)
	if !slices.EqualFunc(all, texts, strings.Contains) {
		t.Fatalf("%s, %s: the test knows %q, and the commands are %q", page, heading, texts, all)
	}
	return all
}

// commands returns the command blocks in a section of a page, in order.
func commands(t testing.TB, page, heading string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, page))
	must(t, err)
	_, text, found := strings.Cut(string(content), "\n"+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return controlplanetest.Blocks(text, "sh")
}

// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// testNodeLocal runs a cache on a node which, as in Kubernetes' manifest, forwards only the zone of the cluster.
func testNodeLocal(t *testing.T, b *bed) {
	c := b.east
	text, err := os.ReadFile(filepath.Join("testdata", "nodelocal.yaml"))
	must(t, err)
	apply := func(block string) {
		// Not on the first node, so that querying the wrong node is noticed.
		b.apply(t, c.Name(), strings.NewReplacer("forward . DNS", "forward . "+c.ServiceIP(10), ": NODE", ": east-1",
			"    .:53 {", block+"    .:53 {").Replace(string(text)))
	}
	apply("")
	b.run(t, "kubectl --context east -n kube-system rollout status daemonset/node-local-dns --timeout 60s")
	cache := constant(nodeLocal)
	c.expectOf(t, cache, "kubernetes.default.svc.cluster.local", constant(c.ServiceIP(1)))
	c.expectOf(t, cache, database, constant("NXDOMAIN"))
	if told := b.findings(t); !slices.ContainsFunc(told, func(f finding) bool {
		return f.Check == "node-local-dns" && f.Result == state.Failed
	}) {
		t.Fatalf("check does not find that the cache lacks the zone: %+v", told)
	}
	const placeholder = "<address of the cluster's DNS>"
	block := controlplanetest.Documented(t, "operate/install.md", placeholder)
	block = strings.ReplaceAll(block, placeholder, c.ServiceIP(10))
	apply("    " + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n    ") + "\n") // as an administrator would add it
	b.check(t)
	c.expectOf(t, cache, database, c.importIPs)
	b.run(t, "kubectl --context east -n kube-system delete daemonset/node-local-dns configmap/node-local-dns")
}

// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/state"
)

// nodeLocalAddress is the one at which pods reach the cache of their node.
const nodeLocalAddress = "169.254.20.10"

// testNodeLocal has a cache on a node, which passes on the zone of the cluster alone, as Kubernetes' manifest has it.
func testNodeLocal(t *testing.T, b *bed) {
	c := b.east
	service, err := c.Client().CoreV1().Services(metav1.NamespaceSystem).Get(t.Context(), "kube-dns", metav1.GetOptions{})
	must(t, err)
	nodes, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	text, err := os.ReadFile(filepath.Join("testdata", "nodelocal.yaml"))
	must(t, err)
	apply := func(block string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "nodelocal.yaml")
		// Not the first node, so that it matters where the cache is asked.
		manifest := strings.NewReplacer("forward . DNS", "forward . "+service.Spec.ClusterIP,
			": NODE", ": "+nodes.Items[len(nodes.Items)-1].Name, "    .:53 {", block+"    .:53 {").Replace(string(text))
		must(t, os.WriteFile(path, []byte(manifest), 0o600))
		b.run(t, "kubectl --context east apply -f "+path)
	}
	apply("")
	b.run(t, "kubectl --context east -n kube-system rollout status daemonset/node-local-dns --timeout 60s")
	cache := func(ctx context.Context) ([]string, error) {
		pods, err := c.Client().CoreV1().Pods(metav1.NamespaceSystem).List(ctx,
			metav1.ListOptions{LabelSelector: "k8s-app=node-local-dns"})
		if err == nil && !slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return isReady(&pod) }) {
			err = errors.New("no pod is ready")
		}
		return []string{nodeLocalAddress}, err
	}
	c.expectOf(t, cache, "kubernetes.default.svc.cluster.local", constant(apiAddress(c.Cluster)))
	c.expectOf(t, cache, database, constant("NXDOMAIN"))
	var report struct {
		Findings []struct{ Check, Result string }
	}
	must(t, json.Unmarshal([]byte(b.run(t, "kubectl clusterset check --contexts east,west,north -o json || test $? = 3")), &report))
	if !slices.Contains(report.Findings, struct{ Check, Result string }{"node-local-dns", state.Failed}) {
		t.Fatalf("check does not find that the cache lacks the zone: %+v", report)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/operate/install.md"))
	must(t, err)
	_, block, _ := strings.Cut(string(page), "### NodeLocal DNSCache")
	_, block, _ = strings.Cut(block, "```corefile\n")
	block, _, _ = strings.Cut(block, "```")
	block = strings.ReplaceAll(block, "<address of the cluster's DNS>", service.Spec.ClusterIP)
	apply("    " + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n    ") + "\n") // as an administrator adds it
	b.check(t)
	c.expectOf(t, cache, database, c.importIPs)
	b.run(t, "kubectl --context east -n kube-system delete daemonset/node-local-dns configmap/node-local-dns")
}

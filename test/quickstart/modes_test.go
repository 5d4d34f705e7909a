// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/test/quickstart/live"
)

// unserved is the answer of the stock Corefile, whose upstream does not exist here, and of a server block without an answer.
var unserved = live.Constant("SERVFAIL")

// testModes has the stock CoreDNS of a cluster answer for the zone in each mode, in the cluster as it was before.
func testModes(t *testing.T, b *bed) {
	c := b.east
	const enable, disable = "kubectl clusterset coredns enable --context east ", "kubectl clusterset coredns disable --context east"
	b.Run(t, "helm install clusterset-dns deploy/chart --kube-context east --namespace clusterset-dns --create-namespace "+
		"--wait --set clusterId=east --set image.registry="+registry)
	b.Run(t, "kubectl clusterset export shop/db --contexts east")
	cluster := func(t *testing.T) {
		t.Helper()
		c.ExpectAnswer(t, "kubernetes.default.svc.cluster.local", live.Constant(live.Address(c.Cluster)))
	}
	served := func(t *testing.T) {
		t.Helper()
		c.ExpectAnswer(t, database, c.ImportIPs)
		cluster(t)
		checked(t, b, b.Run(t, "kubectl clusterset check --contexts east"))
	}
	for mode, flags := range map[string]string{
		"stock": "", "forward": "--forward", "image": "--image " + registry + "/clusterset-dns/coredns:" + appVersion(t),
	} { // in any order
		t.Run(mode, func(t *testing.T) {
			c.ExpectAnswer(t, database, unserved)
			b.Run(t, enable+flags)
			served(t)
			if mode == "image" {
				// Somebody restores the image alone: the cluster's DNS goes on, check finds it, and enable fixes it.
				b.Run(t, "kubectl --context east -n kube-system set image deployment/coredns coredns="+live.StockImage+
					" && kubectl --context east -n kube-system rollout status deployment/coredns --timeout 60s")
				cluster(t)
				c.ExpectAnswer(t, database, unserved)
				report := b.Run(t, "kubectl clusterset check --contexts east || test $? = 3")
				if !strings.Contains(report, "✗  east (dns-zone)") {
					t.Errorf("check does not find it:\n%s", report)
				}
				b.Run(t, enable+flags)
				served(t)
			}
			if mode == "stock" {
				testNodeLocal(t, b)
			}
			b.Run(t, disable)
			c.ExpectAnswer(t, database, unserved)
			cluster(t)
		})
	}
	b.Run(t, "kubectl --context east delete serviceexports --all --all-namespaces\n"+
		"helm uninstall clusterset-dns --kube-context east --namespace clusterset-dns --wait\n"+
		"kubectl --context east delete namespace clusterset-dns\n"+
		"kubectl --context east delete crds serviceexports.multicluster.x-k8s.io serviceimports.multicluster.x-k8s.io")
	c.ExpectNothingLeft(t)
}

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
		b.Run(t, "kubectl --context east apply -f "+path)
	}
	apply("")
	b.Run(t, "kubectl --context east -n kube-system rollout status daemonset/node-local-dns --timeout 60s")
	cache := func(ctx context.Context) ([]string, error) {
		pods, err := c.Client().CoreV1().Pods(metav1.NamespaceSystem).List(ctx,
			metav1.ListOptions{LabelSelector: coredns.NodeCaches})
		if err == nil && !slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return live.IsReady(&pod) }) {
			err = errors.New("no pod is ready")
		}
		return []string{nodeLocalAddress}, err
	}
	c.ExpectOf(t, cache, "kubernetes.default.svc.cluster.local", live.Constant(live.Address(c.Cluster)))
	c.ExpectOf(t, cache, database, live.Constant("NXDOMAIN"))
	red := func(what, output string, checks ...string) {
		t.Helper()
		for _, check := range []string{"node-local-dns", "node-local-answers"} {
			if strings.Contains(output, "✗  east ("+check+")") != slices.Contains(checks, check) {
				t.Errorf("%s: it is not %v that check finds:\n%s", what, checks, output)
			}
		}
	}
	const check = "kubectl clusterset check --contexts east --node-local"
	red("no server block", b.Run(t, check+" || test $? = 3"), "node-local-dns", "node-local-answers")
	// A server block that somebody else wrote, and that leads nowhere.
	apply("    clusterset.local {\n        bind " + nodeLocalAddress +
		"\n        template IN ANY {\n            rcode NXDOMAIN\n        }\n    }\n")
	output := b.Run(t, "kubectl clusterset coredns enable --context east --node-local --timeout 3s 2>&1 || test $? = 1")
	if !strings.Contains(output, "queried at "+nodeLocalAddress+" by a pod, returns NXDOMAIN for zone clusterset.local") {
		t.Errorf("enable does not find that the cache does not serve the zone:\n%s", output)
	}
	red("a wrong server block", b.Run(t, check+" || test $? = 3"), "node-local-answers")
	apply("")

	if output := b.Run(t, "kubectl clusterset coredns enable --context east --node-local"); !strings.Contains(output,
		"queried at "+nodeLocalAddress+" by a pod, serves clusterset.local") {
		t.Errorf("enable does not say that it asked:\n%s", output)
	}
	checked(t, b, b.Run(t, check))
	c.ExpectOf(t, cache, database, c.ImportIPs)
	if left := b.Run(t, "kubectl --context east get pods -A -l app.kubernetes.io/component=dns-probe "+
		"-o go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}}{{end}}{{end}}'"); left != "" {
		t.Errorf("pods are left: %s", left)
	}
	b.Run(t, "kubectl clusterset coredns disable --context east\n"+
		"kubectl --context east -n kube-system get configmap node-local-dns -o jsonpath='{.data.Corefile}' | grep clusterset && exit 1\n"+
		"kubectl --context east -n kube-system delete daemonset/node-local-dns configmap/node-local-dns")
}

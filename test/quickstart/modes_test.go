// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// testNodeLocal has a cache on each node, which passes on the zone of the cluster alone, as Kubernetes' manifest has it.
func testNodeLocal(t *testing.T, b *bed) {
	c := b.east
	service, err := c.Client().CoreV1().Services(metav1.NamespaceSystem).Get(t.Context(), "kube-dns", metav1.GetOptions{})
	must(t, err)
	b.Run(t, "sed s/DNS/"+service.Spec.ClusterIP+"/ test/quickstart/testdata/nodelocal.yaml | kubectl --context east apply -f -\n"+
		"kubectl --context east -n kube-system rollout status daemonset/node-local-dns --timeout 60s")
	cache := func(ctx context.Context) ([]string, error) {
		pods, err := c.Client().CoreV1().Pods(metav1.NamespaceSystem).List(ctx,
			metav1.ListOptions{LabelSelector: "k8s-app=node-local-dns"})
		if err != nil {
			return nil, err
		}
		var addresses []string
		for i := range pods.Items {
			if live.IsReady(&pods.Items[i]) {
				addresses = append(addresses, pods.Items[i].Status.PodIP)
			}
		}
		if len(addresses) == 0 {
			return nil, fmt.Errorf("no pod is ready")
		}
		return addresses, nil
	}
	c.ExpectOf(t, cache, "kubernetes.default.svc.cluster.local", live.Constant(live.Address(c.Cluster)))
	c.ExpectOf(t, cache, database, live.Constant("NXDOMAIN"))
	report := b.Run(t, "kubectl clusterset check --contexts east || test $? = 3")
	if !strings.Contains(report, "✗  east (node-local-dns)") {
		t.Errorf("check does not find it:\n%s", report)
	}
	b.Run(t, "kubectl clusterset coredns enable --context east --node-local")
	checked(t, b, b.Run(t, "kubectl clusterset check --contexts east"))
	// Volumes are as they were when a pod began.
	b.Run(t, "kubectl --context east -n kube-system rollout restart daemonset/node-local-dns\n"+
		"kubectl --context east -n kube-system rollout status daemonset/node-local-dns --timeout 60s")
	c.ExpectOf(t, cache, database, c.ImportIPs)
	b.Run(t, "kubectl clusterset coredns disable --context east\n"+
		"kubectl --context east -n kube-system get configmap node-local-dns -o jsonpath='{.data.Corefile}' | grep clusterset && exit 1\n"+
		"kubectl --context east -n kube-system delete daemonset/node-local-dns configmap/node-local-dns")
}

// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// route plays kube-proxy for a Service of kube-system: its ClusterIP is translated to that of a ready pod.
func (c *cluster) route(t testing.TB, service string) {
	t.Helper()
	system := c.Client().CoreV1()
	found, err := system.Services(metav1.NamespaceSystem).Get(t.Context(), service, metav1.GetOptions{})
	must(t, err)
	var pod string
	eventually(t, "a pod of "+service+" in "+c.Name(), func(ctx context.Context) error {
		pods, err := system.Pods(metav1.NamespaceSystem).List(ctx,
			metav1.ListOptions{LabelSelector: labels.FormatLabels(found.Spec.Selector)})
		if err != nil {
			return err
		}
		at := slices.IndexFunc(pods.Items, func(pod corev1.Pod) bool { return isReady(&pod) })
		if at < 0 {
			return fmt.Errorf("none of %d pods is ready", len(pods.Items))
		}
		pod = pods.Items[at].Status.PodIP
		return nil
	})
	table := "services-" + c.Name() + "-" + service
	rules := fmt.Sprintf("table ip %[1]s\ndelete table ip %[1]s\ntable ip %[1]s {\nchain prerouting {\n"+
		"type nat hook prerouting priority dstnat\nip daddr %[2]s dnat to %[3]s\n}\n}\n",
		table, found.Spec.ClusterIP, pod)
	command := exec.CommandContext(t.Context(), "nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("nft: %v\n%s", err, output)
	}
}

// unserved is the answer of the stock Corefile, whose upstream does not exist here, and of a server block without an answer.
var unserved = constant("SERVFAIL")

// testModes has the stock CoreDNS of a cluster answer for the zone in each mode, in the cluster as it was before.
func testModes(t *testing.T, b *bed) {
	c := b.east
	const enable, disable = "kubectl clusterset coredns enable --context east ", "kubectl clusterset coredns disable --context east"
	b.run(t, "helm install clusterset-dns deploy/chart --kube-context east --namespace clusterset-dns --create-namespace "+
		"--wait --set clusterId=east --set image.registry="+registry)
	c.route(t, "clusterset-coredns")
	b.run(t, "kubectl clusterset export shop/db --contexts east")
	cluster := func(t *testing.T) {
		t.Helper()
		c.expectAnswer(t, "kubernetes.default.svc.cluster.local", constant(address(c.Cluster)))
	}
	served := func(t *testing.T) {
		t.Helper()
		c.expectAnswer(t, database, c.importIPs)
		cluster(t)
		checked(t, b, b.run(t, "kubectl clusterset check --contexts east"))
	}
	for mode, flags := range map[string]string{
		"stock": "", "forward": "--forward", "image": "--image " + registry + "/clusterset-dns/coredns:" + appVersion(t),
	} { // in any order
		t.Run(mode, func(t *testing.T) {
			c.expectAnswer(t, database, unserved)
			b.run(t, enable+flags)
			served(t)
			if mode == "image" {
				// Somebody restores the image alone: the cluster's DNS goes on, check finds it, and enable fixes it.
				b.run(t, "kubectl --context east -n kube-system set image deployment/coredns coredns="+stockImage+
					" && kubectl --context east -n kube-system rollout status deployment/coredns --timeout 60s")
				cluster(t)
				c.expectAnswer(t, database, unserved)
				report := b.run(t, "kubectl clusterset check --contexts east || test $? = 3")
				if !strings.Contains(report, "✗  east (dns-zone)") {
					t.Errorf("check does not find it:\n%s", report)
				}
				b.run(t, enable+flags)
				served(t)
			}
			if mode == "stock" {
				testNodeLocal(t, b)
			}
			b.run(t, disable)
			c.expectAnswer(t, database, unserved)
			cluster(t)
		})
	}
	b.run(t, "kubectl --context east delete serviceexports --all --all-namespaces\n"+
		"helm uninstall clusterset-dns --kube-context east --namespace clusterset-dns --wait\n"+
		"kubectl --context east delete namespace clusterset-dns\n"+
		"kubectl --context east delete crds serviceexports.multicluster.x-k8s.io serviceimports.multicluster.x-k8s.io")
	expectNothingLeft(t, c)
}

// testNodeLocal has a cache on each node, which passes on the zone of the cluster alone, as Kubernetes' manifest has it.
func testNodeLocal(t *testing.T, b *bed) {
	c := b.east
	c.route(t, "kube-dns")
	service, err := c.Client().CoreV1().Services(metav1.NamespaceSystem).Get(t.Context(), "kube-dns", metav1.GetOptions{})
	must(t, err)
	b.run(t, "sed s/DNS/"+service.Spec.ClusterIP+"/ test/quickstart/testdata/nodelocal.yaml | kubectl --context east apply -f -\n"+
		"kubectl --context east -n kube-system rollout status daemonset/node-local-dns --timeout 60s")
	cache := func(ctx context.Context) ([]string, error) {
		pods, err := c.Client().CoreV1().Pods(metav1.NamespaceSystem).List(ctx,
			metav1.ListOptions{LabelSelector: "k8s-app=node-local-dns"})
		if err != nil {
			return nil, err
		}
		var addresses []string
		for i := range pods.Items {
			if isReady(&pods.Items[i]) {
				addresses = append(addresses, pods.Items[i].Status.PodIP)
			}
		}
		if len(addresses) == 0 {
			return nil, fmt.Errorf("no pod is ready")
		}
		return addresses, nil
	}
	c.expectOf(t, cache, "kubernetes.default.svc.cluster.local", constant(address(c.Cluster)))
	c.expectOf(t, cache, database, constant("NXDOMAIN"))
	report := b.run(t, "kubectl clusterset check --contexts east || test $? = 3")
	if !strings.Contains(report, "✗  east (node-local-dns)") {
		t.Errorf("check does not find it:\n%s", report)
	}
	b.run(t, "kubectl clusterset coredns enable --context east --node-local")
	checked(t, b, b.run(t, "kubectl clusterset check --contexts east"))
	// Volumes are as they were when a pod began.
	b.run(t, "kubectl --context east -n kube-system rollout restart daemonset/node-local-dns\n"+
		"kubectl --context east -n kube-system rollout status daemonset/node-local-dns --timeout 60s")
	c.expectOf(t, cache, database, c.importIPs)
	b.run(t, "kubectl clusterset coredns disable --context east\n"+
		"kubectl --context east -n kube-system get configmap node-local-dns -o jsonpath='{.data.Corefile}' | grep clusterset && exit 1\n"+
		"kubectl --context east -n kube-system delete daemonset/node-local-dns configmap/node-local-dns")
}

// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const ourImage = "registry.example.org/clusterset-coredns:v1.0"

// corefile is what the cluster's CoreDNS has.
func (b *bed) corefile(t testing.TB, c *cluster) string {
	t.Helper()
	return b.shell(t,
		"kubectl --context "+c.Name()+" -n kube-system get configmap coredns -o jsonpath='{.data.Corefile}'")
}

// plugin puts the plugin into the CoreDNS of a cluster, as an administrator does: with another image, a server block and
// rights. It may be done before.
func (b *bed) plugin(t *testing.T, c *cluster) {
	t.Helper()
	configMaps := c.Client().CoreV1().ConfigMaps(metav1.NamespaceSystem)
	configMap, err := configMaps.Get(t.Context(), "coredns", metav1.GetOptions{})
	must(t, err)
	if corefile := configMap.Data["Corefile"]; !strings.Contains(corefile, "multicluster") {
		configMap.Data["Corefile"] = corefile + "clusterset.local:53 {\n    errors\n    multicluster {\n        cluster " +
			c.Name() + "\n    }\n}\n"
		_, err = configMaps.Update(t.Context(), configMap, metav1.UpdateOptions{})
		must(t, err)
	}
	at := "kubectl --context " + c.Name()
	b.shell(t, at+" -n kube-system set image deployment/coredns coredns="+ourImage+"\n"+
		at+" create clusterrolebinding clusterset-stock-coredns --clusterrole=clusterset-coredns "+
		"--serviceaccount=kube-system:coredns --dry-run=client -o yaml | "+at+" apply -f -\n"+
		at+" -n kube-system rollout status deployment coredns --timeout 60s")
}

// testCoreDNS has CoreDNS as kubeadm installs it, and refusals of `coredns enable`, which change nothing. Package quickstart
// enables it, since the pods of played nodes answer no queries. It leaves CoreDNS with the plugin.
func testCoreDNS(t *testing.T, b *bed) {
	manifest, err := os.ReadFile("testdata/kubeadm-coredns.yaml")
	must(t, err)
	for _, c := range b.all() {
		b.apply(t, c, string(manifest))
		b.shell(t, "kubectl --context "+c.Name()+" -n kube-system rollout status deployment coredns --timeout 60s")
	}
	stock := b.corefile(t, b.east)
	refused := func(want string) {
		t.Helper()
		if got := b.run(t, "coredns", "enable", "--contexts", "east", "--timeout", "1s"); got.status != 1 ||
			!strings.Contains(got.err, want) {
			t.Errorf("got %+v, want %q", got, want)
		}
		if got := b.corefile(t, b.east); got != stock {
			t.Errorf("it left\n%s", got)
		}
	}
	refused("--set coredns.enabled=true")
	b.apply(t, b.east, `{apiVersion: v1, kind: Service, metadata: {namespace: kube-system, name: clusterset-coredns}, spec: {selector: {app: none}, ports: [{port: 53, protocol: UDP}]}}`)
	refused("the CoreDNS of the chart must answer for clusterset.local first")
	b.shell(t, "kubectl --context east -n kube-system label deployment coredns eks.amazonaws.com/component=coredns")
	refused("Amazon EKS manages the CoreDNS of this cluster")
	b.shell(t, "kubectl --context east -n kube-system label deployment coredns eks.amazonaws.com/component-\n"+
		"kubectl --context east -n kube-system delete service clusterset-coredns")
	b.do(t, "coredns", "disable", "--contexts", "east")
	if got := b.corefile(t, b.east); got != stock {
		t.Errorf("disable left\n%s", got)
	}
	for _, c := range b.all() {
		b.plugin(t, c)
	}
}

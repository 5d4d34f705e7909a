// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	stockImage = "registry.example.org/coredns:v1.12.2"
	ourImage   = "registry.example.org/clusterset-coredns:v1"
)

// corefile is what the cluster's CoreDNS has.
func (b *bed) corefile(t testing.TB, c *cluster) string {
	t.Helper()
	return b.shell(t,
		"kubectl --context "+c.Name()+" -n kube-system get configmap coredns -o jsonpath='{.data.Corefile}'")
}

func (b *bed) image(t testing.TB, c *cluster) string {
	t.Helper()
	return b.shell(t,
		"kubectl --context "+c.Name()+
			" -n kube-system get deployment coredns -o jsonpath='{.spec.template.spec.containers[0].image}'")
}

// added is the server block that `coredns enable` adds.
func added(directive string) string {
	return "# clusterset.local was added by kubectl clusterset coredns enable; coredns disable removes it.\n" +
		"clusterset.local:53 {\n    errors\n    loadbalance\n    prometheus :9153\n    ready\n    " + directive + "\n}\n"
}

// testModes enables and disables the modes that keep the image of the cluster.
func (b *bed) testModes(t *testing.T, stock string) {
	t.Helper()
	if got := b.run(t, "coredns", "enable", "--contexts", "east", "--forward"); got.status != 1 ||
		!strings.Contains(got.err, "--set coredns.enabled=true") {
		t.Errorf("nothing to forward to: %+v", got)
	}
	b.apply(t, b.east, `{apiVersion: v1, kind: Service, metadata: {namespace: kube-system, name: clusterset-coredns, labels: {app.kubernetes.io/name: clusterset-dns, app.kubernetes.io/component: coredns}}, spec: {ports: [{port: 53, protocol: UDP}]}}`)
	defer b.shell(t, "kubectl --context east -n kube-system delete service clusterset-coredns")
	ip := b.shell(t, "kubectl --context east -n kube-system get service clusterset-coredns -o jsonpath='{.spec.clusterIP}'")
	option := strings.NewReplacer("kubernetes cluster.local ", "kubernetes cluster.local clusterset.local ",
		"   pods insecure", "    multicluster clusterset.local\n       pods insecure",
		"disable success cluster.local", "disable success cluster.local clusterset.local",
		"disable denial cluster.local", "disable denial cluster.local clusterset.local").Replace(stock)
	b.shell(t, "kubectl --context east -n kube-system label deployment coredns eks.amazonaws.com/component=coredns")
	for flag, want := range map[string]string{"--forward": stock + added("forward . "+ip), "--zone=clusterset.local": option} {
		if got := b.run(t, "coredns", "enable", "--contexts", "east", flag); got.status != 1 || !strings.Contains(got.err, "EKS") {
			t.Errorf("%s where another one manages CoreDNS: %+v", flag, got)
		}
		b.do(t, "coredns", "enable", "--contexts", "east", "--force", flag)
		if got := b.corefile(t, b.east); got != want || b.image(t, b.east) != stockImage {
			t.Errorf("%s: got %s with\n%s\nwant\n%s", flag, b.image(t, b.east), got, want)
		}
		b.do(t, "coredns", "disable", "--contexts", "east")
		if got := b.corefile(t, b.east); got != stock {
			t.Errorf("%s: got back\n%s", flag, got)
		}
	}
	b.shell(t, "kubectl --context east -n kube-system label deployment coredns eks.amazonaws.com/component-")
}

// testCoreDNS puts the plugin into CoreDNS as kubeadm installs it. Nodes are
// played, so that pods become ready whatever their image.
func testCoreDNS(t *testing.T, b *bed) {
	manifest, err := os.ReadFile("testdata/kubeadm-coredns.yaml")
	must(t, err)
	for _, c := range b.all() {
		b.apply(t, c, string(manifest))
		b.shell(t, "kubectl --context "+c.Name()+" -n kube-system rollout status deployment coredns --timeout 60s")
	}
	stock := b.corefile(t, b.east)
	b.shell(t, "kubectl --context east -n kube-system annotate deployment coredns example.org/kept=yes")
	enable := []string{"coredns", "enable", "--contexts", "east", "--image", ourImage}

	if got := b.run(t, append(enable, "--forward")...); got.status != 2 {
		t.Errorf("two modes: %+v", got)
	}
	b.testModes(t, stock)
	b.do(t, append(enable, "--dry-run")...)
	if b.corefile(t, b.east) != stock || b.image(t, b.east) != stockImage {
		t.Error("a dry run changed something")
	}

	// Nobody plays the new pods: it takes back all that it did.
	must(t, b.east.Kwok().Freeze())
	got := b.run(t, append(enable, "--timeout", "3s")...)
	must(t, b.east.Kwok().Thaw())
	if got.status != 1 || !strings.Contains(got.err, "all changes were rolled back") {
		t.Errorf("a rollout that does not end: %+v", got)
	}
	if b.corefile(t, b.east) != stock || b.image(t, b.east) != stockImage {
		t.Error("it was not taken back")
	}
	if left := b.shell(t,
		"kubectl --context east get clusterroles,clusterrolebindings -o name | grep kubectl-clusterset || true"); left != "" {
		t.Errorf("it left %s", left)
	}
	if left := b.shell(t,
		"kubectl --context east -n kube-system get deployment coredns -o jsonpath='{.metadata.annotations}'"); strings.Contains(left, "clusterset-dns") {
		t.Errorf("it left %s", left)
	}

	b.do(t, enable...)
	want := "(multicluster-options) {\n    cluster east\n}\n" + stock + added("import /etc/clusterset-dns/*.conf")
	if corefile := b.corefile(t, b.east); corefile != want || b.image(t, b.east) != ourImage {
		t.Errorf("got %s with\n%s\nwant\n%s", b.image(t, b.east), corefile, want)
	}
	version := func() string {
		return b.shell(t, "kubectl --context east -n kube-system get deployment/coredns configmap/coredns -o jsonpath='{.items[*].metadata.generation} {.items[1].metadata.resourceVersion}'")
	}
	before := version()
	if out := b.do(t, enable...); out != "" || version() != before {
		t.Errorf("a second time changed something: %q", out)
	}

	// What a user changes stays, also where it is taken out again.
	b.shell(t, "kubectl --context east -n kube-system get configmap coredns -o yaml | sed 's/^\\( *\\)loop$/\\1log/' | kubectl --context east replace -f -")
	b.do(t, "coredns", "disable", "--contexts", "east")
	if corefile := b.corefile(t, b.east); corefile != strings.Replace(stock, "    loop\n", "    log\n", 1) ||
		b.image(t, b.east) != stockImage {
		t.Errorf("got %s with\n%s", b.image(t, b.east), corefile)
	}
	if kept := b.shell(t,
		"kubectl --context east -n kube-system get deployment coredns -o jsonpath='{.metadata.annotations}'"); !strings.Contains(kept, "example.org/kept") || strings.Contains(kept, "clusterset-dns") {
		t.Errorf("the annotations are %s", kept)
	}
	b.do(t, "coredns", "disable", "--contexts", "east") // again
	b.do(t, "coredns", "enable", "--contexts", "east,west,north", "--image", ourImage)
	eventually(t, "the pods", func() error {
		if got := b.shell(t, "kubectl --context east -n kube-system get pods -l k8s-app=kube-dns -o jsonpath='{.items[*].spec.containers[0].image}'"); got != ourImage+" "+ourImage {
			return fmt.Errorf("got %s", got)
		}
		return nil
	})
}

// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	stockImage = "registry.example.org/coredns:v1.12.0"
	ourImage   = "registry.example.org/clusterset-coredns:v1"
)

// corefile is what the cluster's CoreDNS has.
func (b *bed) corefile(t testing.TB, c *cluster) string {
	t.Helper()
	return b.shell(t, "kubectl --context "+c.Name()+" -n kube-system get configmap coredns -o jsonpath='{.data.Corefile}'")
}

func (b *bed) image(t testing.TB, c *cluster) string {
	t.Helper()
	return b.shell(t, "kubectl --context "+c.Name()+" -n kube-system get deployment coredns -o jsonpath='{.spec.template.spec.containers[0].image}'")
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

	if got := b.run(t, "coredns", "enable", "--contexts", "east"); got.status != 2 {
		t.Errorf("no image: %+v", got)
	}
	b.do(t, append(enable, "--dry-run=server")...)
	if b.corefile(t, b.east) != stock || b.image(t, b.east) != stockImage {
		t.Error("a dry run changed something")
	}

	// Nobody plays the new pods: it takes back all that it did.
	must(t, b.east.Kwok().Freeze())
	got := b.run(t, append(enable, "--timeout", "3s")...)
	must(t, b.east.Kwok().Thaw())
	if got.status != 1 || !strings.Contains(got.err, "all is as it was before") {
		t.Errorf("a rollout that does not end: %+v", got)
	}
	if b.corefile(t, b.east) != stock || b.image(t, b.east) != stockImage {
		t.Error("it was not taken back")
	}
	if left := b.shell(t, "kubectl --context east get clusterroles,clusterrolebindings -o name | grep kubectl-clusterset || true"); left != "" {
		t.Errorf("it left %s", left)
	}
	if left := b.shell(t, "kubectl --context east -n kube-system get deployment coredns -o jsonpath='{.metadata.annotations}'"); strings.Contains(left, "clusterset-dns") {
		t.Errorf("it left %s", left)
	}

	b.do(t, enable...)
	want := strings.Replace(stock, "    kubernetes ", "    multicluster clusterset.local\n    kubernetes ", 1)
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
	if corefile := b.corefile(t, b.east); corefile != strings.Replace(stock, "    loop\n", "    log\n", 1) || b.image(t, b.east) != stockImage {
		t.Errorf("got %s with\n%s", b.image(t, b.east), corefile)
	}
	if kept := b.shell(t, "kubectl --context east -n kube-system get deployment coredns -o jsonpath='{.metadata.annotations}'"); !strings.Contains(kept, "example.org/kept") || strings.Contains(kept, "clusterset-dns") {
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

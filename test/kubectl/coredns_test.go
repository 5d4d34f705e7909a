// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusters "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
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

	testRevisionChangesMeanwhile(t, b)

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

// testRevisionChangesMeanwhile has a revision that disable deletes change between its being read and its being deleted, once. A dry run
// is enough: the API server looks at the preconditions of that, too.
func testRevisionChangesMeanwhile(t *testing.T, b *bed) {
	t.Helper()
	config := b.east.Config()
	between := &between{t: t, b: b}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		between.next = next
		return between
	})
	east, err := clusters.FromConfig(config, "east", system)
	must(t, err)
	teller := progress.Teller{Out: io.Discard, Results: io.Discard, Timeout: time.Minute}
	if err := coredns.Disable(t.Context(), coredns.Options{Cluster: east, Zone: zone, DryRun: true, Teller: teller}); err != nil {
		t.Errorf("disable: %v", err)
	}
	if want := []int{http.StatusConflict, http.StatusOK}; len(between.statuses) < 2 || between.statuses[0] != want[0] || between.statuses[1] != want[1] {
		t.Errorf("deletions of revisions were answered with %d, want %d at first", between.statuses, want)
	}
}

// between changes a ReplicaSet just before the first deletion of one gets to the API server, and knows what all of them were answered with.
type between struct {
	t        *testing.T
	b        *bed
	next     http.RoundTripper
	statuses []int
}

func (r *between) RoundTrip(request *http.Request) (*http.Response, error) {
	at, name := "/apis/apps/v1/namespaces/"+coredns.Namespace+"/replicasets/", ""
	if path, ok := strings.CutPrefix(request.URL.Path, at); ok && request.Method == http.MethodDelete {
		name = path
	}
	if name != "" && len(r.statuses) == 0 {
		touch := []byte(`{"metadata":{"annotations":{"example.org/touched":"yes"}}}`)
		if _, err := r.b.east.Client().AppsV1().ReplicaSets(coredns.Namespace).Patch(request.Context(), name, types.MergePatchType, touch, metav1.PatchOptions{}); err != nil {
			r.t.Errorf("touch ReplicaSet %s: %v", name, err)
		}
	}
	response, err := r.next.RoundTrip(request)
	if name != "" && err == nil {
		r.statuses = append(r.statuses, response.StatusCode)
	}
	return response, err
}

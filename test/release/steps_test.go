// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/quickstart/live"
)

// property is the id of north, as an administrator of a platform sets it.
const property = `
apiVersion: about.k8s.io/v1alpha1
kind: ClusterProperty
metadata: {name: cluster.clusterset.k8s.io}
spec: {value: north}
`

// serviceExport is one in a repository.
const serviceExport = `
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {namespace: shop, name: queue}
`

// about is the definition of ClusterProperties.
const about = root + "/test/sim/testdata/about.yaml"

func install(t *testing.T, b *bed) {
	b.use(t, b.before)
	b.Run(t, "kubectl --context north apply -f - <<'EOF'\n"+string(must(os.ReadFile(about))(t))+"EOF\n"+
		"kubectl --context north wait --for condition=Established crd/clusterproperties.about.k8s.io")
	b.Run(t, "kubectl --context north apply -f - <<'EOF'"+property+"EOF")
	b.north.Remember(t) // what this user has before the installation

	b.Run(t, "kubectl clusterset check --pre --contexts east,west,north")
	for _, name := range []string{"east", "west"} {
		b.Run(t, "helm install clusterset-dns "+b.before.chart()+" --kube-context "+name+" --namespace clusterset-dns "+
			"--create-namespace --set clusterId="+name+" --wait")
	}
	b.manifest(t, b.before)
}

// manifest applies the manifest of a release in north, and the CoreDNS of its chart, which the manifest does not have.
func (b *bed) manifest(t *testing.T, of release) {
	t.Helper()
	b.Run(t, "kubectl --context north apply -f "+of.manifest()+" && "+of.server()+" apply -f -\n"+
		"kubectl --context north -n clusterset-dns rollout status deployment/clusterset-controller --timeout 60s &&"+
		"kubectl --context north -n kube-system rollout status deployment/clusterset-coredns --timeout 60s")
}

// server is a command that passes the objects of the chart's CoreDNS to kubectl in north.
func (r release) server() string {
	return "helm template clusterset-dns " + r.chart() + " --set clusterId=north --show-only templates/coredns.yaml " +
		"--show-only templates/coredns-rights.yaml | kubectl --context north"
}

func join(t *testing.T, b *bed) {
	b.Run(t, "kubectl clusterset join east west north")
	b.Run(t, "kubectl clusterset status --contexts east,west,north")
	b.runs(t, b.before, b.before, b.before)
}

func enable(t *testing.T, b *bed) {
	b.Run(t, "kubectl clusterset coredns enable --contexts east,west,north")
	for _, c := range b.Clusters {
		b.clients[c].Expect(t, database, live.Constant("NXDOMAIN"))
		b.clients[c].Expect(t, "kubernetes.default.svc.cluster.local", live.Constant(live.Address(c.Cluster)))
	}
}

func export(t *testing.T, b *bed) {
	b.Run(t, "kubectl clusterset export shop/db --contexts east,west,north")
	for _, name := range []string{"east", "north"} { // as GitOps does
		b.Run(t, "kubectl --context "+name+" apply -f - <<'EOF'"+serviceExport+"EOF")
	}
	b.everywhere(t)
	for _, c := range b.Clusters {
		b.ExpectEndpoints(t, c, map[string]string{"east": live.Used, "west": live.Used, "north": live.Used})
	}
	b.check(t)
}

// runs holds that the controllers are those of releases, in the order of the clusters, by what the command says and by
// what the running programs say in their heartbeats.
func (b *bed) runs(t *testing.T, releases ...release) {
	t.Helper()
	var found struct {
		Client   string
		Clusters []struct{ Context, Controller string }
	}
	text := b.Run(t, "kubectl clusterset version --contexts east,west,north -o json")
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		t.Fatal(err)
	}
	for i, c := range b.Clusters {
		if got, want := found.Clusters[i].Controller, releases[i].version; got != want {
			t.Errorf("the controller of %s is %s, want %s", c.Name(), got, want)
		}
		b.eventually(t, "kubectl --context "+c.Name()+" get deployments -A "+
			`-o jsonpath='{.items[?(@.metadata.name=="clusterset-coredns")].spec.template.spec.containers[0].image}'`,
			releases[i].image("coredns-slim"))
		b.eventually(t, "kubectl --context "+c.Name()+" -n clusterset-dns get leases "+
			`-o jsonpath='{.items[*].metadata.annotations.clusterset-dns\.github\.io/version}'`, releases[i].version)
	}
}

// upgrade goes from one release to the next, one cluster after the other, while all names keep resolving in all clusters.
func upgrade(t *testing.T, b *bed) {
	stop := map[string]func() int{}
	for _, c := range b.Clusters {
		stop[database+" in "+c.Name()] = b.clients[c].Keep(t, database, c.ImportIPs)
		stop[queue+" in "+c.Name()] = b.clients[c].Keep(t, queue, live.PodsOf("queue", b.east, b.north))
	}
	b.use(t, b.after)

	for i, name := range []string{"east", "west"} {
		b.Run(t, "helm upgrade clusterset-dns "+b.after.chart()+" --kube-context "+name+" --namespace clusterset-dns "+
			"--reset-then-reuse-values --wait")
		b.check(t)
		b.runs(t, slices.Concat(slices.Repeat([]release{b.after}, i+1), slices.Repeat([]release{b.before}, 2-i))...)
	}
	b.manifest(t, b.after)
	b.check(t)
	b.runs(t, b.after, b.after, b.after)

	for what, stop := range stop {
		count := stop()
		t.Logf("%s: %d answers", what, count)
		if count == 0 {
			t.Errorf("%s: nobody asked", what)
		}
	}
	b.everywhere(t)
	for _, c := range b.Clusters {
		// No pod has anything of the release before, that of DNS included.
		b.eventually(t, "kubectl --context "+c.Name()+" get pods -A -o jsonpath='{.items[*].spec.containers[*].image}' | "+
			"tr ' ' '\\n' | grep clusterset-dns/ | sed 's/.*://' | sort -u", b.after.version)
	}
}

func uninstall(t *testing.T, b *bed) {
	// The new controllers work: a change comes through.
	b.Run(t, "kubectl clusterset unexport shop/queue --context east")
	for _, c := range b.Clusters {
		b.clients[c].Expect(t, queue, live.PodsOf("queue", b.north))
	}
	b.Run(t, "kubectl clusterset leave west --contexts east,west,north")
	b.clients[b.west].Expect(t, queue, live.Constant("NXDOMAIN"))
	for _, c := range []*live.Cluster{b.east, b.north} {
		b.clients[c].Expect(t, queue, live.PodsOf("queue", b.north))
		b.ExpectEndpoints(t, c, map[string]string{"east": live.Used, "north": live.Used})
	}
	b.Run(t, "kubectl clusterset leave north --contexts east,north")
	b.Run(t, "kubectl clusterset coredns disable --contexts east,west,north")
	for _, c := range b.Clusters {
		b.Run(t, "kubectl --context "+c.Name()+" delete serviceexports --all --all-namespaces")
	}

	for _, name := range []string{"east", "west"} {
		b.Run(t, "helm uninstall clusterset-dns --kube-context "+name+" --namespace clusterset-dns --wait\n"+
			"kubectl --context "+name+" delete namespace clusterset-dns\nkubectl --context "+name+
			" delete crds serviceexports.multicluster.x-k8s.io serviceimports.multicluster.x-k8s.io")
	}
	b.Run(t, b.after.server()+" delete -f -")
	b.Run(t, "kubectl --context north delete -f "+b.after.manifest())
	for _, c := range b.Clusters {
		t.Run(c.Name(), func(t *testing.T) {
			c.ExpectNothingLeft(t)
			b.clients[c].Expect(t, "kubernetes.default.svc.cluster.local", live.Constant(live.Address(c.Cluster)))
		})
	}
}

// eventually runs a command until its output is the wanted one.
func (b *bed) eventually(t *testing.T, command, want string) {
	t.Helper()
	script := "for try in $(seq 300); do got=$(" + command + "); " +
		"test \"$got\" != '" + strings.TrimSpace(want) + "' || exit 0; sleep 0.2; done; echo \"got $got\"; exit 1"
	b.Run(t, script)
}

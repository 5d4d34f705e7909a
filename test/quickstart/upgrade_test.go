// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// testUpgrade upgrades the clusters to the next release one by one, while all names keep resolving on the nodes of all clusters. The
// first cluster is rolled back once, as docs/operate/operations.md says.
func testUpgrade(t *testing.T, b *bed) {
	stop := map[string]func() int{}
	for _, c := range b.clusters {
		stop[database+" in "+c.Name()] = c.keep(t, database, c.importIPs)
		stop[queue+" in "+c.Name()] = c.keep(t, queue, pods("shop", "app=queue", b.east, b.north))
	}
	b.runs(t, b.before, b.before, b.before)
	b.use(t, b.after)
	releases := []release{b.before, b.before, b.before}
	upgrade := func(i int) {
		b.run(t, "helm upgrade clusterset-dns "+b.after.chart()+" --kube-context "+b.clusters[i].Name()+
			" --namespace clusterset-dns --reset-then-reuse-values --wait")
		b.check(t)
		releases[i] = b.after
		b.runs(t, releases...)
	}
	upgrade(0)
	b.run(t, commands(t, "docs/operate/operations.md", "### Roll back")[0])
	releases[0] = b.before
	b.runs(t, releases...)
	for i := range b.clusters {
		upgrade(i)
	}
	for what, stop := range stop {
		count := stop()
		t.Logf("%s: %d answers", what, count)
		if count == 0 {
			t.Errorf("%s: nobody asked", what)
		}
	}
	// No pod has an image of the previous release, not even a DNS pod.
	b.run(t, `for cluster in east west north; do
  until kubectl --context $cluster get pods -A -o yaml >$HOME/pods && ! grep 'image: `+registry+`/clusterset-dns/' $HOME/pods | grep -v ':`+
		b.after.version+`$'; do sleep 1; done
done`)
}

// runs waits until kubectl clusterset status shows that the controllers have the versions of these releases, in the order of
// the clusters. A terminating replica leads until its preStop hook has slept.
func (b *bed) runs(t *testing.T, releases ...release) {
	t.Helper()
	until(t, "the versions of the controllers", func() error {
		var found struct {
			Clusters []struct{ Context, Controller string }
		}
		must(t, json.Unmarshal([]byte(b.run(t, "kubectl clusterset status --contexts east,west,north -o json")), &found))
		for i, c := range found.Clusters {
			if want := releases[i].version; c.Controller != want {
				return fmt.Errorf("the controller of %s is %s, want %s", c.Context, c.Controller, want)
			}
		}
		return nil
	})
}

// testManifest installs a release in north without Helm, with the id in a ClusterProperty, and removes it.
func testManifest(t *testing.T, b *bed) {
	about, err := os.ReadFile("testdata/about.yaml")
	must(t, err)
	b.apply(t, "north", string(about))
	b.run(t, "kubectl --context north wait --for condition=Established crd/clusterproperties.about.k8s.io")
	b.apply(t, "north", `apiVersion: about.k8s.io/v1alpha1
kind: ClusterProperty
metadata: {name: cluster.clusterset.k8s.io}
spec: {value: north}`)
	b.north.remember(t) // the objects of this user before the installation
	b.run(t, "kubectl clusterset check --pre --contexts north")
	b.run(t, "kubectl --context north apply -f "+b.after.manifest()+
		"\nkubectl --context north -n clusterset-dns rollout status deployment/clusterset-controller --timeout 60s\n"+
		"kubectl clusterset export shop/db --contexts north")
	b.expectEndpoints(t, b.north, map[string]string{"north": used})
	b.run(t, "kubectl clusterset unexport shop/db --contexts north")
	b.expectEndpoints(t, b.north, nil)
	b.run(t, "kubectl --context north delete -f "+b.after.manifest())
	b.north.expectNothingLeft(t)
	b.run(t, "kubectl --context north delete clusterproperties --all")
}

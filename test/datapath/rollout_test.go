// SPDX-License-Identifier: Apache-2.0

//go:build stateful

package datapath

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// TestRollouts runs the recipes of docs/operate/operations.md, docs/use/export-services.md and docs/use/ingress.md.
func TestRollouts(t *testing.T) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		t.Fatal("it needs haproxy: apt-get install --no-install-recommends haproxy")
	}
	b := newBed(t, "nftables", false)
	t.Run("gateway", func(t *testing.T) { haproxy(t, b) })
	t.Run("a version, cluster by cluster", func(t *testing.T) { rollOut(t, b) })
	t.Run("clusters, one by one", func(t *testing.T) { upgradeClusters(t, b) })
}

// replace replaces the pods of a service in a cluster, as a Deployment of strategy Recreate does, or an eviction: all
// are gone before new ones are ready.
func (c *cluster) replace(t *testing.T, s service, old []*pod) {
	for _, p := range old {
		p.setReady(t, false)
		now := int64(0)
		must(t, c.CoreV1().Pods(s.namespace).Delete(t.Context(), p.name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
		must(t, p.server.Kill())
	}
	for i := range old {
		c.pod(t, podSpec{
			namespace: s.namespace, name: fmt.Sprintf("%s-new-%d", s.name, i),
			labels: map[string]string{"app": s.name}, node: i % len(c.nodes), serve: []string{"tcp:8080"},
		})
	}
}

// saturate sets or removes the annotation that moves a service away from the cluster.
func (c *cluster) saturate(t *testing.T, s service, value string) {
	c.patchExport(t, s, `{"metadata":{"annotations":{%q:%s}}}`, export.AnnotationSaturated, value)
}

// rollOut: east and west get a new version of a service, one after the other. Its pods leave before their replacements
// are ready, and no connection is lost, because an annotation moves the traffic away before.
func rollOut(t *testing.T, b *bed) {
	s := service{namespace: b.namespace(t), name: "rolled", ports: http80}
	pods := map[*cluster][]*pod{b.east: b.east.deploy(t, s, 2), b.west: b.west.deploy(t, s, 2)}
	watched := []*stream{
		b.north.client(t, s.namespace, 0).watch(t, "tcp4", s.at(80)), b.east.client(t, s.namespace, 0).watch(t, "tcp4", s.at(80)),
	}
	answered := func(by ...string) {
		for _, w := range watched {
			w.only(t, time.Now(), by...)
		}
	}
	answered("east", "west")
	began := time.Now()
	for _, each := range []struct{ leaves, stays *cluster }{{b.east, b.west}, {b.west, b.east}} {
		each.leaves.saturate(t, s, `"true"`)
		answered(each.stays.Name())
		each.leaves.replace(t, s, pods[each.leaves])
		each.leaves.saturate(t, s, "null")
		answered("east", "west")
	}
	for i, from := range []string{"north", "east"} {
		watched[i].intact(t, began, "a new version in east, then west, from "+from)
	}
}

// upgradeClusters: each cluster is drained, loses its pods and its API server, and comes back.
func upgradeClusters(t *testing.T, b *bed) {
	s := service{namespace: b.namespace(t), name: "upgraded", ports: http80}
	pods := map[*cluster][]*pod{b.east: b.east.deploy(t, s, 2), b.west: b.west.deploy(t, s, 2)}
	watched := b.north.client(t, s.namespace, 0).watch(t, "tcp4", s.at(80))
	watched.only(t, time.Now(), "east", "west")
	began := time.Now()
	for _, each := range []struct{ leaves, stays *cluster }{{b.east, b.west}, {b.west, b.east}} {
		others := []*cluster{each.stays, b.north}
		for _, other := range others {
			other.annotateMember(t, each.leaves, memberstate.AnnotationDrain, "true")
		}
		watched.only(t, time.Now(), each.stays.Name())
		server := each.leaves.APIServer()
		must(t, server.Kill())
		must(t, server.Start(t.Context()))
		each.leaves.replace(t, s, pods[each.leaves])
		each.leaves.awaitEndpoints(t, s, 4)
		for _, other := range others {
			other.annotateMember(t, each.leaves, memberstate.AnnotationDrain, "false")
		}
		watched.only(t, time.Now(), "east", "west")
	}
	watched.intact(t, began, "east, then west is drained and upgraded")
}

// haproxy: an haproxy of Debian's in north, with the configuration that the documentation shows, shares requests between
// the Service of its cluster and the import of the other clusters, by weight. If the Service has no endpoint, the import
// gets all.
func haproxy(t *testing.T, b *bed) {
	s, _, client := b.deployJack(t)
	local := b.north.pods(t, s, 1, "http:8080")[0]
	b.north.serve(t, s)
	proxy := b.north.pod(t, podSpec{namespace: s.namespace, name: "haproxy"})
	proxy.run(t, "haproxy", "-db", "-f", b.north.writeFile(t, "haproxy.cfg", documented(t, "use/ingress.md", "resolvers cluster")))
	url := fmt.Sprintf("http://%s/jack", proxy.addresses[0])
	// A share is as asked to six standard deviations of as many choices.
	const count, abroad = 1000, 0.1
	off := 6 * math.Sqrt(abroad*(1-abroad)/count)
	shared := func(what string, want float64) {
		var counted tally.Attempts
		eventually(t, what, func(ctx context.Context) (err error) {
			if counted, err = client.get(ctx, count, url); err != nil {
				return err
			}
			by := counted.Clusters()
			if share := float64(by["east"]+by["west"]) / count; by["east"] == 0 || by["west"] == 0 ||
				math.Abs(share-want) > off {
				return fmt.Errorf("the import has %.3f: %s", share, counted)
			}
			return nil
		})
		t.Logf("%s: %s", what, counted)
	}
	shared("10 % to the import", abroad)
	local.setReady(t, false)
	shared("the local Service has no endpoint", 1)
	local.setReady(t, true)
	shared("the local Service is back", abroad)
}

// SPDX-License-Identifier: Apache-2.0

//go:build stateful

package datapath

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/controller/memberstate"
)

// TestRollouts runs the recipes of docs/operate/operations.md, docs/use/export-services.md and docs/use/ingress.md.
func TestRollouts(t *testing.T) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		t.Fatal("it needs haproxy: apt-get install --no-install-recommends haproxy")
	}
	b := newBed(t, "nftables")
	t.Run("gateway", func(t *testing.T) { haproxy(t, b) })
	t.Run("a version, cluster by cluster", func(t *testing.T) { rollOut(t, b) })
	t.Run("clusters, one by one", func(t *testing.T) { upgradeClusters(t, b) })
}

// replace replaces the pods of a service in a cluster, as a Deployment of strategy Recreate does, or an eviction: all
// are gone before new ones are ready.
func (c *cluster) replace(t *testing.T, s service, old []*pod) {
	t.Helper()
	for _, p := range old {
		p.setReady(t, false)
		now := int64(0)
		must(t, c.CoreV1().Pods(s.namespace).Delete(t.Context(), p.name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
		p.server.stop(t)
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
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, export.AnnotationSaturated, value)
	_, err := c.mcs.MulticlusterV1beta1().ServiceExports(s.namespace).Patch(t.Context(), s.name, types.MergePatchType,
		patch, metav1.PatchOptions{})
	must(t, err)
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
		t.Helper()
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

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
	"k8s.io/utils/ptr"

	"github.com/clusterset-dns/clusterset-dns/controller/export"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// TestRollouts follows the recipes of docs/operate/operations.md, docs/use/export-services.md and docs/use/ingress.md.
func TestRollouts(t *testing.T) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		t.Fatal("it needs haproxy: apt-get install --no-install-recommends haproxy")
	}
	b := newBed(t, "nftables", false)
	t.Run("gateway", func(t *testing.T) { haproxy(t, b) })
	t.Run("a version, cluster by cluster", func(t *testing.T) {
		oneByOne(t, b, false, func(s service, leaves, _ *cluster, away bool) {
			leaves.patchExport(t, s, `{"metadata":{"annotations":{%q:%s}}}`, export.AnnotationOverloaded,
				map[bool]string{true: `"true"`, false: "null"}[away])
		}, b.north, b.east)
	})
	t.Run("clusters, one by one", func(t *testing.T) {
		oneByOne(t, b, true, func(s service, leaves, stays *cluster, away bool) {
			if !away {
				leaves.awaitEndpoints(t, s, 4, nil)
			}
			for _, other := range []*cluster{stays, b.north} {
				other.drain(t, leaves, away)
			}
		}, b.north)
	})
}

// oneByOne: first east and then west lose their pods and, with restarts, their API server. No connection from these
// clusters is lost, because move moves the traffic away before, and back after.
func oneByOne(t *testing.T, b *bed, restarts bool, move func(s service, leaves, stays *cluster, away bool),
	from ...*cluster,
) {
	s := service{namespace: b.namespace(t), name: "replaced", ports: http80}
	pods := map[*cluster][]*pod{b.east: b.east.deploy(t, s, 2), b.west: b.west.deploy(t, s, 2)}
	var watched []*stream
	for _, c := range from {
		watched = append(watched, c.client(t, s.namespace, 0).watch(t, lossless, s.at(80)))
	}
	answered := func(by ...string) {
		for _, w := range watched {
			w.only(t, time.Now(), by...)
		}
	}
	answered("east", "west")
	began := time.Now()
	for _, each := range []struct{ leaves, stays *cluster }{{b.east, b.west}, {b.west, b.east}} {
		move(s, each.leaves, each.stays, true)
		answered(each.stays.Name())
		if restarts {
			server := each.leaves.APIServer()
			must(t, server.Kill())
			must(t, server.Start(t.Context()))
		}
		each.leaves.replace(t, s, pods[each.leaves])
		move(s, each.leaves, each.stays, false)
		answered("east", "west")
	}
	for i, c := range from {
		watched[i].intact(t, began, "east, then west, from "+c.Name())
	}
}

// replace replaces the pods of a service in a cluster, as an eviction does, or a Deployment with strategy Recreate: all
// old pods are gone before new ones are ready.
func (c *cluster) replace(t *testing.T, s service, old []*pod) {
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	for _, p := range old {
		p.setReady(t, false)
		must(t, c.CoreV1().Pods(s.namespace).Delete(t.Context(), p.name, now))
		must(t, p.server.Kill())
	}
	c.pods(t, s, len(old))
}

// haproxy: Debian's haproxy in north, with the configuration in the documentation, splits requests by weight between
// the local Service and the import from other clusters. If the Service has no endpoints, the import gets all requests.
func haproxy(t *testing.T, b *bed) {
	s, _, client := b.deployJack(t)
	local := b.north.pods(t, s, 1, "http:8080")[0]
	b.north.serve(t, s)
	proxy := b.north.pod(t, podSpec{namespace: s.namespace, name: "haproxy"})
	proxy.run(t, "haproxy", "-db", "-f", b.north.writeFile(t, "haproxy.cfg", documented(t, "use/ingress.md", "resolvers cluster")))
	url := fmt.Sprintf("http://%s/jack", proxy.addresses[0])
	// Each share is within six standard deviations of this many random choices.
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

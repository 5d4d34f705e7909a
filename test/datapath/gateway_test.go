// SPDX-License-Identifier: Apache-2.0

//go:build stateful

package datapath

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/tally"
)

// haproxy: an haproxy of Debian's in north, with the configuration that the documentation shows, shares requests between
// the Service of its cluster and the import of the other clusters, by weight. If the Service has no endpoint, the import
// gets all.
func haproxy(t *testing.T, b *bed) {
	const namespace = "jack" // as in the documentation
	for _, c := range b.all() {
		c.createNamespace(t, namespace)
	}
	s := jack(namespace)
	b.east.deploy(t, s, 1, "http:8080")
	b.west.deploy(t, s, 1, "http:8080")
	local := b.north.pods(t, s, 1, "http:8080")
	b.north.serve(t, s)
	client := b.north.client(t, namespace, 0)
	b.north.awaitEndpoints(t, s, 2)

	proxy := b.north.pod(t, podSpec{namespace: namespace, name: "haproxy"})
	proxy.run(t, "haproxy", "-db", "-f", b.north.writeFile(t, "haproxy.cfg", documented(t, "use/ingress.md", "resolvers cluster")))
	url := fmt.Sprintf("http://%s/jack", proxy.addresses[0])
	// A share is as asked to six standard deviations of as many choices.
	const count, abroad = 1000, 0.1
	off := 6 * math.Sqrt(abroad*(1-abroad)/count)
	shared := func(what string, want float64) {
		t.Helper()
		var counted *tally.Tally
		eventually(t, what, func(ctx context.Context) (err error) {
			if counted, err = client.get(ctx, count, url); err != nil {
				return err
			}
			by := counted.Clusters()
			if share := float64(by["east"]+by["west"]) / count; counted.Lost() > 0 || by["east"] == 0 || by["west"] == 0 ||
				math.Abs(share-want) > off {
				return fmt.Errorf("the import has %.3f: %s", share, counted)
			}
			return nil
		})
		t.Logf("%s: %s", what, counted)
	}
	shared("10 % to the import", abroad)
	local[0].setReady(t, false)
	shared("the local Service has no endpoint", 1)
	local[0].setReady(t, true)
	shared("the local Service is back", abroad)
}

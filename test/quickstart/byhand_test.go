// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// testByHand joins two clusters with the commands of the section "Join by hand". It runs the programs as processes of
// this machine.
func testByHand(t *testing.T, b *bed) {
	blocks := knownCommands(t, page, "## Join by hand", []string{
		"apply -f deploy/chart/files/crds", "give west east", "kind: ServiceExport", "delete secret east",
	})
	b.directory = root // the commands use files of the checkout
	install, give, export, leave := blocks[0], blocks[1], blocks[2], blocks[3]
	b.run(t, install)
	server := map[*cluster]*clusterset.Program{}
	for _, c := range []*cluster{b.east, b.west} {
		server[c] = startByHand(t, b, c)
	}
	expect := func(c *cluster, want wanted) {
		c.expectOf(t, constant(server[c].Address), database, want)
	}
	b.run(t, export)
	expect(b.east, b.east.importIPs)
	expect(b.west, constant("NXDOMAIN"))
	b.run(t, give)
	const read = "kubectl --kubeconfig $HOME/east get endpointslices -A"
	b.run(t, "kubectl --context west -n clusterset-dns get secret east -o jsonpath={.data.kubeconfig} | base64 -d >$HOME/east\n"+read)
	expect(b.west, b.west.importIPs)
	b.expectEndpoints(t, b.west, map[string]string{"east": used})
	b.run(t, strings.ReplaceAll(export, "--context east", "--context west"))
	for _, c := range []*cluster{b.east, b.west} {
		b.expectEndpoints(t, c, map[string]string{"east": used, "west": used})
	}

	b.run(t, leave)
	b.expectEndpoints(t, b.west, map[string]string{"west": used})
	b.expectEndpoints(t, b.east, map[string]string{"east": used, "west": used})
	b.run(t, "until "+read+" 2>&1 | grep Unauthorized; do sleep 1; done")
}

// startByHand starts the programs with the rights that the commands granted, and returns CoreDNS.
func startByHand(t *testing.T, b *bed, c *cluster) *clusterset.Program {
	controlplanetest.RunController(t, c.Cluster.Cluster, b.images[b.after.image("clusterset-controller")])
	server, err := c.StartDNS(t.Context(), b.images[b.after.image("coredns")])
	must(t, err)
	controlplanetest.End(t, server.Process)
	return server
}

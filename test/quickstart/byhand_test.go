// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
)

const byHandPage = "docs/by-hand.md"

// byHand are what is in the blocks of commands of the page.
var byHand = []string{"apply -f deploy/chart/files/crds", "create secret generic east", "delete secret east"}

// testByHand joins two clusters by the commands of the page. What it says of running the programs is done with processes of this machine.
func testByHand(t *testing.T, b *bed) {
	blocks := commands(t, byHandPage, "")
	if len(blocks) != len(byHand) {
		t.Fatalf("%s has %d blocks of commands, and this test knows %d", byHandPage, len(blocks), len(byHand))
	}
	for i, want := range byHand {
		if !strings.Contains(blocks[i], want) {
			t.Fatalf("block %d of %s has no %q:\n%s", i+1, byHandPage, want, blocks[i])
		}
	}
	b.run(t, blocks[0])
	var server *clusterset.Program
	for _, c := range []*cluster{b.east, b.west} {
		server = startByHand(t, c)
	}
	expect := func(want wanted) {
		t.Helper()
		eventually(t, "the answer in west", func(ctx context.Context) error {
			records, err := want(ctx)
			if err != nil {
				return err
			}
			answer, err := dns.At(server.Address).Ask(ctx, database, "A")
			if err == nil && answer.Text() != strings.Join(records, " ") {
				err = fmt.Errorf("it is %q, want %q", answer.Text(), records)
			}
			return err
		})
	}
	b.run(t, `kubectl --context east apply -f - <<EOF
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata:
  namespace: shop
  name: db
EOF`)
	expect(constant("NXDOMAIN"))
	b.run(t, blocks[1])
	expect(b.west.importIPs)
	b.expectEndpoints(t, b.west, map[string]string{"east": used})
	b.run(t, blocks[2])
	expect(constant("NXDOMAIN"))
}

// startByHand starts the programs with the rights that they were granted, and returns CoreDNS.
func startByHand(t *testing.T, c *cluster) *clusterset.Program {
	t.Helper()
	programs := filepath.Join(os.Getenv(programsVariable), "images")
	controller, resolver, err := clusterset.WriteCredentials(t.Context(), c.Cluster)
	must(t, err)
	running, err := clusterset.StartController(c.Cluster, filepath.Join(programs, "clusterset-controller"), controller)
	must(t, err)
	t.Cleanup(func() { must(t, running.Stop(context.Background(), patience)) })
	server, err := clusterset.StartDNS(c.Cluster, filepath.Join(programs, "coredns"), resolver)
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop(context.Background(), patience)) })
	return server
}

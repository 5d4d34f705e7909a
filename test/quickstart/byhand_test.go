// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/quickstart/live"
)

const byHandSection = "## Join by hand"

// byHand are what is in the blocks of commands of the section.
var byHand = []string{"apply -f deploy/chart/files/crds", "give west east", "kind: ServiceExport", "delete secret east"}

// testByHand joins two clusters by the commands of the section. What it says of running the programs is done with
// processes of this machine.
func testByHand(t *testing.T, b *bed) {
	blocks := commands(t, page, byHandSection)
	if len(blocks) != len(byHand) {
		t.Fatalf("%s has %d blocks of commands, and this test knows %d", byHandSection, len(blocks), len(byHand))
	}
	for i, want := range byHand {
		if !strings.Contains(blocks[i], want) {
			t.Fatalf("block %d of %s has no %q:\n%s", i+1, byHandSection, want, blocks[i])
		}
	}
	b.Directory, b.Hidden = absolute(t, root), "" // the commands name files of it
	install, give, export, leave := blocks[0], blocks[1], blocks[2], blocks[3]
	b.Run(t, install)
	server := map[*cluster]*clusterset.Program{}
	for _, c := range []*cluster{b.east, b.west} {
		server[c] = startByHand(t, b, c)
	}
	expect := func(c *cluster, want live.Wanted) {
		t.Helper()
		c.ExpectOf(t, live.Constant(server[c].Address), database, want)
	}
	b.Run(t, export)
	expect(b.east, b.east.ImportIPs)
	expect(b.west, live.Constant("NXDOMAIN"))
	b.Run(t, give)
	credential := credentialByHand(t, b.west, "east")
	expect(b.west, b.west.ImportIPs)
	b.ExpectEndpoints(t, b.west, map[string]string{"east": live.Used})
	b.Run(t, strings.ReplaceAll(export, "--context east", "--context west"))
	for _, c := range []*cluster{b.east, b.west} {
		b.ExpectEndpoints(t, c, map[string]string{"east": live.Used, "west": live.Used})
	}

	b.Run(t, leave)
	b.ExpectEndpoints(t, b.west, map[string]string{"west": live.Used})
	b.ExpectEndpoints(t, b.east, map[string]string{"east": live.Used, "west": live.Used})
	eventually(t, "the end of the token", func(ctx context.Context) error {
		if _, err := credential.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(ctx,
			metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("it is answered with %q", fmt.Sprint(err))
		}
		return nil
	})
}

// credentialByHand is what a cluster reads a member by. It works.
func credentialByHand(t *testing.T, c *cluster, name string) kubernetes.Interface {
	t.Helper()
	secret, err := c.Client().CoreV1().Secrets(clusterset.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	must(t, err)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	_, err = client.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	return client
}

// startByHand starts the programs with the rights that they were granted, and returns CoreDNS.
func startByHand(t *testing.T, b *bed, c *cluster) *clusterset.Program {
	t.Helper()
	controller, resolver, err := clusterset.WriteCredentials(t.Context(), c.Cluster)
	must(t, err)
	running, err := clusterset.StartController(c.Cluster, b.Images[b.after.image("clusterset-controller")], controller)
	must(t, err)
	t.Cleanup(func() { must(t, running.Stop(context.Background(), time.Minute)) })
	server, err := clusterset.StartDNS(c.Cluster, b.Images[b.after.image("coredns")], resolver)
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop(context.Background(), time.Minute)) })
	return server
}

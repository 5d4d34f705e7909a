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
	b.directory, b.hidden = absolute(t, root), "" // the commands name files of it
	install, give, export, leave := blocks[0], blocks[1], blocks[2], blocks[3]
	b.run(t, install)
	server := map[*cluster]*clusterset.Program{}
	for _, c := range []*cluster{b.east, b.west} {
		server[c] = startByHand(t, b, c)
	}
	expect := func(c *cluster, want wanted) {
		t.Helper()
		c.expectOf(t, constant(server[c].Address), database, want)
	}
	b.run(t, export)
	expect(b.east, b.east.importIPs)
	expect(b.west, constant("NXDOMAIN"))
	b.run(t, give)
	credential := credentialByHand(t, b.west, "east")
	expect(b.west, b.west.importIPs)
	b.expectEndpoints(t, b.west, map[string]string{"east": used})
	b.run(t, strings.ReplaceAll(export, "--context east", "--context west"))
	for _, c := range []*cluster{b.east, b.west} {
		b.expectEndpoints(t, c, map[string]string{"east": used, "west": used})
	}

	b.run(t, leave)
	b.expectEndpoints(t, b.west, map[string]string{"west": used})
	b.expectEndpoints(t, b.east, map[string]string{"east": used, "west": used})
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
	controller, err := clusterset.WriteCredential(t.Context(), c.Cluster, clusterset.Namespace, "clusterset-controller")
	must(t, err)
	resolver, err := clusterset.WriteCredential(t.Context(), c.Cluster, metav1.NamespaceSystem, "clusterset-coredns")
	must(t, err)
	running, err := clusterset.StartController(c.Cluster, b.images[b.after.image("clusterset-controller")], controller)
	must(t, err)
	t.Cleanup(func() { must(t, running.Stop(context.Background(), time.Minute)) })
	server, err := clusterset.StartDNS(c.Cluster, b.images[b.after.image("coredns")], resolver)
	must(t, err)
	t.Cleanup(func() { must(t, server.Stop(context.Background(), time.Minute)) })
	return server
}

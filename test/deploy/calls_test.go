// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/clusterset-dns/clusterset-dns/test/audit"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
)

// TestCoreDNSUsesEveryRight compares what CoreDNS calls with the rights that the chart gives it. Those of the
// controller and of members are proved by test/controller.
func TestCoreDNSUsesEveryRight(t *testing.T) {
	cluster := controlplanetest.Start(t,
		controlplane.Options{Name: "audited", Zones: []string{}, APIServerArgs: audit.Args()})[0]
	log := audit.Of(t, cluster)
	rights := allCoreDNSRights(t)
	run(t, rights, kubectl(t), "--kubeconfig", kubeconfig(t, cluster), "apply", "--server-side", "-f", "-")
	serveSet(t, cluster)
	eventually(t, "every right is used", func(context.Context) error {
		if problems := audit.Compare(t, rights, nil, log); len(problems) > 0 {
			return fmt.Errorf("%q", problems)
		}
		return nil
	})
}

// serveSet runs a CoreDNS as the service account that deploy/ makes for it.
func serveSet(t *testing.T, cluster *controlplane.Cluster) {
	t.Helper()
	credential, err := clusterset.WriteCredential(t.Context(), cluster, "kube-system", "clusterset-coredns")
	must(t, err)
	address := start(t, cluster, strings.NewReplacer("FILE", string(credential), "CLUSTER", cluster.Name()).Replace(`
.:PORT {
  bind 127.0.0.1
  multicluster clusterset.local {
    kubeconfig FILE
    namespace_labels kubernetes.io/metadata.name
    groups multicluster.x-k8s.io net.gke.io
    cluster CLUSTER
    prefer zone
  }
  kubernetes cluster.local {
    kubeconfig FILE
    pods verified
    endpoint_pod_names
  }
}`))
	eventually(t, "CoreDNS answers", func(ctx context.Context) error {
		got, err := ask(ctx, address, "clusterset.local.", "SOA")
		if err == nil && !strings.Contains(got, "hostmaster") {
			err = fmt.Errorf("got %s", got)
		}
		return err
	})
}

// allCoreDNSRights are those of CoreDNS, with all that the chart gives it where it is asked to.
func allCoreDNSRights(t *testing.T) string {
	t.Helper()
	return template(t, "--show-only", "templates/coredns-rights.yaml",
		"--set", "coredns.enabled=true,coredns.readNodes=true,coredns.readGKEImports=true")
}

// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/test/datapath/network"
	"github.com/clusterset-dns/clusterset-dns/test/datapath/proxy"
)

// connect attaches a network namespace with a kube-proxy, for all nodes of the cluster, to the router. In iptables
// mode, packets to a port that a Service does not have pass through, which is how pods reach the API server.
func (c *cluster) connect(t *testing.T) {
	var err error
	c.nodes, err = network.New()
	must(t, err)
	t.Cleanup(func() { must(t, c.nodes.Close()) })
	pods := c.Options().PodCIDRs[0]
	must(t, router.Attach(c.nodes, []netip.Addr{pods.Masked().Addr()}, pods))
	must(t, c.Apply(t.Context(), []byte(proxy.Rights)))
	kubeconfig, err := c.ServiceAccountKubeconfig(t.Context(), metav1.NamespaceSystem, "kube-proxy")
	must(t, err)
	credential := filepath.Join(c.Directory(), "kube-proxy.kubeconfig")
	must(t, os.WriteFile(credential, []byte(strings.Replace(string(kubeconfig), "127.0.0.1", c.ServiceIP(1), 1)), 0o600))
	proxy.Start(t, c.Cluster, c.Name()+"-0", c.nodes, credential, "iptables")
}

// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterset-dns/clusterset-dns/test/controlplane/assets"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/process"
)

// testPortForward asks DNS by a port-forward to a pod of CoreDNS. A second kwok
// plays the kubelet of its node, and leads the port to our CoreDNS.
func testPortForward(t *testing.T, b *bed) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_, kubelet, err := net.SplitHostPort(listener.Addr().String())
	must(t, err)
	must(t, listener.Close())
	_, dns, err := net.SplitHostPort(b.east.dns.Address)
	must(t, err)
	config := filepath.Join(t.TempDir(), "kwok.yaml")
	must(t, os.WriteFile(config, fmt.Appendf(nil, `kind: ClusterPortForward
apiVersion: kwok.x-k8s.io/v1alpha1
metadata: {name: dns}
spec: {forwards: [{ports: [53], target: {address: 127.0.0.1, port: %s}}]}
`, dns), 0o600))
	paths, err := assets.Ensure(t.Context(), os.Stderr, assets.Kwok)
	must(t, err)
	kwok, err := process.Start(process.Spec{
		Name: "the kubelet of east", Path: paths[assets.Kwok], Dir: b.east.Directory(),
		Args: []string{
			"--kubeconfig=user.kubeconfig", "--config=stages.yaml", "--config=" + config, "--manage-single-node=none",
			"--server-address=127.0.0.1:" + kubelet, "--tls-cert-file=apiserver.crt", "--tls-private-key-file=apiserver.key",
		},
		LogFile: filepath.Join(t.TempDir(), "kwok.log"),
	})
	must(t, err)
	defer func() { must(t, kwok.Stop(context.Background(), 5*time.Second)) }()
	for _, node := range []string{"east-0", "east-1"} {
		b.shell(t, fmt.Sprintf(`kubectl --context east patch node %s --subresource status --type merge -p '{"status":{"addresses":[{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":%s}}}}'`, node, kubelet))
	}
	b.namespace(t, "forwarded", b.east)
	b.service(t, b.east, "forwarded", "web", false, 80, "10.64.0.10")
	b.export(t, "forwarded/web", b.east)
	var last string
	defer func() {
		if t.Failed() {
			t.Logf("%s\n%s", last, kwok.LogTail(4096))
		}
	}()
	eventually(t, "an answer through a pod", func() error {
		last = b.do(t, "explain", "forwarded/web", "--contexts", "east")
		if !strings.Contains(last, "asked at pod kube-system/coredns-") || !strings.Contains(last, "(as it should be)") {
			return fmt.Errorf("got\n%s", last)
		}
		return nil
	})
}

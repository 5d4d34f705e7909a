// SPDX-License-Identifier: Apache-2.0

package kubectl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	plugin "github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/setup"
	"github.com/clusterset-dns/clusterset-dns/test/clusterset"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/controlplanetest"
	"github.com/clusterset-dns/clusterset-dns/test/controlplane/link"
)

const (
	zone = "clusterset.local"
)

// recast has a program change the Corefile of a cluster.
func recast(context, program string) string {
	return "kubectl --context " + context + " -n kube-system get configmap coredns -o yaml | " + program +
		" | kubectl --context " + context + " replace -f -"
}

var dnsFaults = []fault{
	{
		name: "no CoreDNS", round: "CoreDNS, one", says: []string{"dns-zone east"},
		do: func(t *testing.T, b *bed) {
			b.shell(t, "kubectl --context east -n kube-system delete deployment coredns")
			b.stock(t, b.east)
		},
		hand: map[string]func(*testing.T, *bed){"There is no Deployment": func(t *testing.T, b *bed) {
			b.serve(t, b.east, b.east.Access, "1m")
		}},
		after: "kubectl --context east apply -f testdata/kubeadm-coredns.yaml -l k8s-app=kube-dns\n" +
			"kubectl --context east -n kube-system set image deployment/coredns coredns=" + ourImage,
	},
	{
		name: "pods that are not there yet", round: "CoreDNS, two", says: []string{"coredns-available east"},
		do: func(t *testing.T, b *bed) {
			must(t, b.east.Kwok().Freeze())
			b.shell(t, "kubectl --context east -n kube-system rollout restart deployment coredns")
		},
		hand: map[string]func(*testing.T, *bed){"rollout status": func(t *testing.T, b *bed) { must(t, b.east.Kwok().Thaw()) }},
	},
	{
		name: "pods that never come", round: "CoreDNS, two", says: []string{"coredns-available north"},
		do: func(t *testing.T, b *bed) {
			must(t, b.north.Kwok().Freeze())
			b.shell(t, `kubectl --context north -n kube-system patch deployment coredns -p '{"spec":{"progressDeadlineSeconds":1,"strategy":{"rollingUpdate":{"maxUnavailable":0}},"template":{"metadata":{"annotations":{"example.org/new":"yes"}}}}}'`)
			eventually(t, "Kubernetes to give up", func() error {
				if got := b.shell(t, `kubectl --context north -n kube-system get deployment coredns -o jsonpath='{.status.conditions[?(@.type=="Progressing")].status}'`); got != "False" {
					return fmt.Errorf("Progressing is %s", got)
				}
				return nil
			})
		},
		played: func(t *testing.T, b *bed) { must(t, b.north.Kwok().Thaw()) },
		after:  `kubectl --context north -n kube-system patch deployment coredns -p '{"spec":{"progressDeadlineSeconds":600,"strategy":{"rollingUpdate":{"maxUnavailable":1}}}}'`,
	},
	{
		name: "another image", round: "CoreDNS, three", says: []string{"dns-zone east"},
		shell: "kubectl --context east -n kube-system set image deployment/coredns coredns=example.org/stock:1",
		do:    func(t *testing.T, b *bed) { b.play(t, b.east) },
		hand: map[string]func(*testing.T, *bed){"an image that lacks the plugin": func(t *testing.T, b *bed) {
			b.shell(t, "kubectl --context east -n kube-system set image deployment/coredns coredns="+ourImage)
		}},
		played: func(t *testing.T, b *bed) { b.play(t, b.east) },
	},
	{
		name: "a Corefile that does not parse", round: "CoreDNS, four", says: []string{"corefile east"},
		shell: recast("east", `sed 's/^        loop$/        import/'`),
		edit:  `sed -i 's/^        import$/        loop/'`,
	},
	{
		name: "no line in the Corefile", round: "CoreDNS, three", says: []string{"corefile-multicluster west"},
		also:  []string{"dns-zone west"},
		shell: recast("west", "sed '/^ *multicluster {/,/}/d'"),
		hand: map[string]func(*testing.T, *bed){"coredns enable": func(t *testing.T, b *bed) {
			b.shell(t, recast("west", `sed 's/^\( *\)clusterset.local:53 {$/&\n\1    multicluster {\n\1        cluster west\n\1    }/'`))
		}},
		do:     func(t *testing.T, b *bed) { b.play(t, b.west) },
		played: func(t *testing.T, b *bed) { b.play(t, b.west) },
	},
	{
		name: "the id of another cluster", round: "CoreDNS, one", says: []string{"corefile-cluster west"},
		shell: recast("west", `sed 's/^\( *cluster\) west$/\1 east/'`),
		edit:  `sed -i 's/^\( *cluster\) east$/\1 CONTEXT/'`,
	},
	{
		name: "no id where one is wanted", round: "networks",
		says: []string{"corefile-cluster east", "corefile-cluster north", "corefile-cluster west"},
		do: func(t *testing.T, b *bed) {
			b.service(t, b.west, "checked", "near", true, 80, "10.65.0.30")
			b.apply(t, b.west, prefers("near", "cluster"))
		},
		shell: "for c in east west north; do\n" + recast("$c", `sed '/^ *cluster [a-z]*$/d'`) + "\ndone",
		edit:  `sed -i 's/^\( *\)multicluster {/&\n\1    cluster CONTEXT/'`,
		after: "kubectl clusterset unexport checked/near --contexts west",
	},
	{
		name: "CoreDNS may not read", round: "CoreDNS, three", says: []string{"dns-zone north"},
		shell: "kubectl --context north delete clusterrolebinding clusterset-coredns",
		do:    func(t *testing.T, b *bed) { b.serve(t, b.north, b.north.Access, "1s") },
		hand:  map[string]func(*testing.T, *bed){"missing permissions": func(t *testing.T, b *bed) { b.grant(t, "north") }},
	},
	{
		name: "DNS that is not reached", round: "CoreDNS, one", says: []string{"dns-reachable north"},
		do:   func(_ *testing.T, b *bed) { b.north.silent = true },
		hand: map[string]func(*testing.T, *bed){"--dns north=": func(_ *testing.T, b *bed) { b.north.silent = false }},
	},
	{
		name: "pods with the Corefile of before", round: "CoreDNS, four", says: []string{"dns-zone north"},
		do:     func(t *testing.T, b *bed) { b.stock(t, b.north) },
		which:  "rollout restart",
		played: func(t *testing.T, b *bed) { b.play(t, b.north) },
	},
	{
		name: "a cache on nodes that lacks the zone", round: "CoreDNS, one", says: []string{"node-local-dns north"},
		do: func(t *testing.T, b *bed) {
			b.apply(t, b.north, `apiVersion: apps/v1
kind: DaemonSet
metadata: {namespace: kube-system, name: node-local-dns, labels: {k8s-app: node-local-dns}}
spec:
  selector: {matchLabels: {k8s-app: node-local-dns}}
  template:
    metadata: {labels: {k8s-app: node-local-dns}}
    spec:
      containers: [{name: node-cache, image: example.org/node-cache}]
      volumes: [{name: config-volume, configMap: {name: node-local-dns}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: kube-system, name: node-local-dns}
data:
  Corefile: |
    cluster.local:53 {
        forward . 10.96.0.2
    }
    .:53 {
        forward . /etc/resolv.conf
    }
`)
		},
		edit:  `sed -i 's/^    \.:53 {$/    clusterset.local:53 {\n        forward . 10.96.0.2\n    }\n&/'`,
		after: "kubectl --context north -n kube-system delete daemonset/node-local-dns configmap/node-local-dns",
	},
	{
		name: "DNS that does not hear what is new", round: "CoreDNS, two", says: []string{"dns-names west"},
		do: func(t *testing.T, b *bed) {
			way, err := b.west.Remote("dns")
			must(t, err)
			b.serve(t, b.west, way.Access, "1m")
			t.Cleanup(way.Reconnect)
			way.CutOff(link.Both)
			b.export(t, "checked/c", b.west)
		},
		which:  "rollout restart",
		played: func(t *testing.T, b *bed) { b.play(t, b.west) },
		after:  "kubectl clusterset unexport checked/c --contexts west",
	},
}

// prefers is an export with a preference.
func prefers(name, what string) string {
	return fmt.Sprintf(`{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, metadata: {namespace: checked, name: %s}, spec: {exportedAnnotations: {clusterset-dns.github.io/prefer: %s}}}`, name, what)
}

// play does what kubelets would: CoreDNS runs as its Deployment and its ConfigMap say.
func (b *bed) play(t *testing.T, c *cluster) {
	t.Helper()
	parsed, err := setup.ParseCorefile(b.corefile(t, c))
	must(t, err)
	if !parsed.Serves(zone) || !strings.Contains(b.image(t, c), "clusterset") {
		b.stock(t, c)
		return
	}
	b.serve(t, c, c.Access, "1m")
}

// stock has a CoreDNS without the plugin answer in a cluster.
func (b *bed) stock(t *testing.T, c *cluster) {
	t.Helper()
	b.start(t, c, ".:PORT {\n bind 127.0.0.1\n template IN ANY {\n rcode NXDOMAIN\n }\n}\n")
}

// serve has a CoreDNS with the plugin answer in a cluster, which reaches the API server in some way, and waits for it at
// the start.
func (b *bed) serve(t *testing.T, c *cluster, by *controlplane.Access, startup string) {
	t.Helper()
	credential, err := by.ServiceAccountKubeconfig(t.Context(), metav1.NamespaceSystem, "clusterset-coredns")
	must(t, err)
	path := filepath.Join(c.Directory(), "coredns.kubeconfig")
	must(t, os.WriteFile(path, credential, 0o600))
	b.start(t, c,
		fmt.Sprintf(".:PORT {\n bind 127.0.0.1\n multicluster %s {\n kubeconfig %s\n startup_timeout %s\n }\n}\n", zone, path, startup))
}

// start has a CoreDNS answer in a cluster in the place of the one before.
func (b *bed) start(t *testing.T, c *cluster, corefile string) {
	t.Helper()
	if c.dns != nil {
		must(t, c.dns.Kill())
	}
	var err error
	c.dns, err = clusterset.StartCorefile(c.Cluster, filepath.Join(b.programs, "coredns"), corefile)
	must(t, err)
	controlplanetest.Eventually(t, "CoreDNS of "+c.Name(), func(ctx context.Context) error {
		_, err := plugin.DNSAt(c.dns.Address).Ask(ctx, zone, "SOA")
		return err
	})
}

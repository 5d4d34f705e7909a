// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/setup"
)

// Parts of Corefiles, and of what fixes them.
const (
	own        = ". {\n kubernetes cluster.local\n}\n"
	forwards   = own + "clusterset.local:53 {\n forward . 10.96.0.99\n}"
	enable     = "kubectl clusterset coredns enable --contexts east"
	edit       = "`kubectl --context east -n kube-system edit configmap coredns`."
	clusterID  = "Set `cluster east` in the multicluster block of the Corefile: " + edit
	restarting = "`kubectl --context east -n kube-system logs deployment/coredns`. If its pods have not read the Corefile, restart them: `kubectl --context east -n kube-system rollout restart deployment coredns`."
)

// serves is the Corefile of a CoreDNS with the plugin in east.
var serves = plugin("cluster east\n")

func plugin(options string) string {
	return own + "clusterset.local:53 {\n multicluster {\n" + options + " }\n}\n"
}

// TestDNS has CoreDNS as kubeadm installs it in two clusters. West serves the zone with the plugin, and nothing is wrong there.
func TestDNS(t *testing.T) {
	const rollout = "Wait for the rollout, or revert it: `kubectl --context east -n kube-system rollout undo deployment coredns`."
	fails := func(east, _ *Cluster) { east.Apex = cluster.Answer{Rcode: "SERVFAIL"} }
	for name, test := range map[string]struct {
		corefile string
		change   func(east, west *Cluster)
		want     string
	}{
		"no id":     {corefile: plugin("")},
		"the id":    {corefile: plugin("cluster EAST\n")},
		"a forward": {corefile: forwards},
		"the id of another cluster": {
			corefile: plugin("cluster west\n"),
			want:     "failed corefile-cluster east: The Corefile has `cluster west`, but this cluster is east: DNS prefers endpoints of the wrong cluster. > " + clusterID,
		},
		"no way": {
			corefile: own, change: fails,
			want: "failed dns-zone east: The cluster's DNS returns SERVFAIL for zone clusterset.local. > " + enable,
		},
		"the plugin does not answer": {
			corefile: serves, change: fails,
			want: "failed dns-zone east: The cluster's DNS returns SERVFAIL for zone clusterset.local. > Find the cause in the logs of CoreDNS, such as missing permissions or an image that lacks the plugin multicluster: " + restarting,
		},
		"the forward does not answer": {
			corefile: forwards, change: fails,
			want: "failed dns-zone east: The cluster's DNS returns SERVFAIL for zone clusterset.local. > Make the server to which the Corefile forwards clusterset.local serve the zone: `kubectl --context east -n kube-system get configmap coredns -o yaml` prints its address.",
		},
		"another DNS server": {
			change: func(east, west *Cluster) {
				fails(east, west)
				east.CoreDNS = nil
			},
			want: "failed dns-zone east: The cluster's DNS returns SERVFAIL for zone clusterset.local. > Have the cluster's DNS forward clusterset.local to the CoreDNS of the chart, see docs/operate/install.md#platforms.",
		},
		"unreachable": {
			corefile: serves, change: func(east, _ *Cluster) { east.DNSError, east.Namespace = errors.New("no pod is ready"), "mcs" },
			want: "warning dns-reachable east: The cluster's DNS could not be queried: no pod is ready. > kubectl clusterset check --contexts east --dns east=<address> --system-namespace mcs",
		},
		"a wrong answer": {
			corefile: forwards, change: func(east, _ *Cluster) {
				east.Lookups = []NameAnswer{{Answer: cluster.Answer{Name: "a.b.svc.c", Type: "A", Rcode: "NXDOMAIN"}, Wrong: true, Expected: []string{"10.0.0.1"}}}
			},
			want: "failed dns-names east: The cluster's DNS returns NXDOMAIN for a.b.svc.c A instead of 10.0.0.1. > Restart the server of the zone, for example `kubectl --context east -n kube-system rollout restart deployment coredns`.",
		},
		"a node-local cache": {
			corefile: forwards, change: func(east, _ *Cluster) { east.NodeCaches = []string{"hides"} },
			want: "failed node-local-dns east: Pods cannot resolve names in clusterset.local: NodeLocal DNSCache answers their queries on each node, and its Corefile in ConfigMap kube-system/hides has no server block for the zone. > Add the server block of docs/operate/install.md#nodelocal-dnscache: `kubectl --context east -n kube-system edit configmap hides`.",
		},
		"a Corefile that does not parse": {
			change: func(east, _ *Cluster) { east.CorefileError = fmt.Errorf("%w: line 7", setup.ErrCorefile) },
			want:   "failed corefile east: ConfigMap kube-system/coredns: the Corefile does not parse: line 7. > kubectl --context east -n kube-system edit configmap coredns",
		},
		"a rollout that has not begun": {
			corefile: serves, change: func(east, _ *Cluster) { east.CoreDNS.Generation = 8 },
			want: "failed coredns-available east: The rollout of CoreDNS is not complete: of 1 pods, 1 are updated and 1 are available. > " + rollout,
		},
		"old pods that still answer": {
			corefile: serves, change: func(east, _ *Cluster) { east.CoreDNS.Status.Replicas = 2 },
			want: "failed coredns-available east: The rollout of CoreDNS is not complete: of 2 pods, 1 are updated and 1 are available. > " + rollout,
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet(func(east, west *Cluster) {
				east.CoreDNS, east.Corefile = deployed(), parsed(t, test.corefile)
				west.CoreDNS, west.Corefile = deployed(), parsed(t, plugin("cluster west\n"))
				if test.change != nil {
					test.change(east, west)
				}
			})
			if got := texts(set.Check()); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// deployed is a CoreDNS whose rollout is complete.
func deployed() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Generation: 7},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 7, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
	}
}

// parsed is a Corefile, nil if the text is empty.
func parsed(t *testing.T, text string) *setup.Corefile {
	t.Helper()
	if text == "" {
		return nil
	}
	corefile, err := setup.ParseCorefile(text)
	must(t, err)
	return corefile
}

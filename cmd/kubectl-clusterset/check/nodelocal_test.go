// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/dns"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/nodecache"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/progress"
)

// hides is the Corefile of a cache that does not pass the zone, passes one that does.
const (
	hides  = "cluster.local:53 {\n    bind 169.254.20.10\n    forward . 10.96.0.2\n}\n.:53 {\n    forward . /etc/resolv.conf\n}\n"
	passes = hides + "clusterset.local {\n forward . 10.96.0.2\n}\n"
)

// cached is a cluster with NodeLocal DNSCache, as it is in a cluster.
func cached(corefile string) *cluster.Cluster {
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: coredns.Namespace, Name: name, Labels: map[string]string{"k8s-app": name}}
	}
	volume := func(name string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name},
		}}}
	}
	return &cluster.Cluster{Kube: fake.NewClientset(
		&appsv1.DaemonSet{
			ObjectMeta: named("node-local-dns"),
			Spec: appsv1.DaemonSetSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"k8s-app": "node-local-dns"}},
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					Volumes: []corev1.Volume{volume("kube-dns"), volume("node-local-dns")},
				}},
			},
		},
		&appsv1.DaemonSet{ObjectMeta: named("another")},
		&corev1.ConfigMap{ObjectMeta: named("node-local-dns"), Data: map[string]string{"Corefile": corefile}},
	)}
}

// TestNodeLocalCacheThatHidesTheZone reads the DaemonSet and its Corefile. The fix is a command, in the mode in which the
// cluster's DNS serves the zone, unless that command would refuse.
func TestNodeLocalCacheThatHidesTheZone(t *testing.T) {
	const block = "dd this server block with `kubectl --context east -n kube-system edit configmap node-local-dns`.\n" +
		"clusterset.local:53 {\n    errors\n    cache {\n        success 9984 5\n        denial 9984 1\n    }\n    reload\n    bind 169.254.20.10\n    forward . 10.96.0.2 {\n        force_tcp\n    }\n}"
	const enable = "Run `kubectl clusterset coredns enable --contexts east"
	for name, test := range map[string]struct {
		cache, corefile, want string
		change                func(*Cluster)
	}{
		"no block": {cache: hides, corefile: "", want: enable + " --node-local`. Or a" + block},
		"stock": {
			cache: hides, corefile: ". {\n kubernetes cluster.local clusterset.local {\n multicluster clusterset.local\n }\n}",
			want: enable + " --node-local`. Or a" + block,
		},
		"forward": {
			cache: hides, corefile: "clusterset.local:53 {\n forward . 10.96.0.99\n}",
			want: enable + " --forward --node-local`. Or a" + block,
		},
		"image": {
			cache: hides, corefile: ". {\n multicluster clusterset.local\n}", want: enable + " --image example.org/clusterset:1 --node-local`. Or a" + block,
			change: func(c *Cluster) { c.Deployment = installed("example.org/clusterset:1") },
		},
		"managed": {cache: hides, want: "A" + block, change: func(c *Cluster) {
			c.Deployment.Labels = map[string]string{"eks.amazonaws.com/component": "coredns"}
		}},
		"no CoreDNS": {cache: hides, want: "A" + block, change: func(c *Cluster) { c.Deployment = nil }},
		"passes":     {cache: passes},
	} {
		set := newSet(func(east, _ *Cluster) {
			east.Deployment, east.Corefile = installed("registry.k8s.io/coredns/coredns:v1.12.2"), test.corefile
			east.NodeCaches, _ = coredns.Caches(t.Context(), cached(test.cache))
			if test.change != nil {
				test.change(east)
			}
		})
		if got := hint(set, "node-local-dns"); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestNodeLocalAnswers: what a cache answers counts, not its Corefile alone.
func TestNodeLocalAnswers(t *testing.T) {
	answer := func(rcode string, records ...string) nodecache.Answer {
		return nodecache.Answer{
			Cache: "node-local-dns", Node: "one", Server: "169.254.20.10", Answer: dns.Answer{Rcode: rcode, Records: records},
		}
	}
	lost := nodecache.Answer{Cache: "node-local-dns", Node: "one", Server: "169.254.20.10", Error: "i/o timeout"}
	for name, test := range map[string]struct {
		answers            NodeCacheAnswers
		result, says, hint string
	}{
		"not asked": {NodeCacheAnswers{}, Skipped, "add --node-local", ""},
		"serves": {
			NodeCacheAnswers{Asked: true, Answers: []nodecache.Answer{answer("NOERROR", "ns.dns. hostmaster. 1 2 3 4 5")}}, OK, "", "",
		},
		"does not exist": {
			NodeCacheAnswers{Asked: true, Answers: []nodecache.Answer{answer("NXDOMAIN")}},
			Failed,
			"The NodeLocal DNSCache of node one, queried at 169.254.20.10 by a pod, returns NXDOMAIN for zone clusterset.local.",
			"kubectl --context east -n kube-system rollout restart daemonset node-local-dns",
		},
		"an empty answer": {NodeCacheAnswers{Asked: true, Answers: []nodecache.Answer{answer("NOERROR")}}, Failed, "returns no records", ""},
		"no answer":       {NodeCacheAnswers{Asked: true, Answers: []nodecache.Answer{lost}}, Failed, "returns i/o timeout", ""},
		"could not ask": {
			NodeCacheAnswers{Asked: true, Error: errors.New("pods is forbidden")}, Warning, "could not be queried: pods is forbidden", "",
		},
	} {
		set := newSet(func(east, _ *Cluster) {
			east.NodeCaches, _ = coredns.Caches(t.Context(), cached(passes))
			east.NodeCacheAnswers = test.answers
		})
		for _, finding := range Run(set) {
			if finding.Check == "node-local-answers" && finding.Context == "east" &&
				(finding.Result != test.result || !strings.Contains(finding.What+finding.Reason, test.says) ||
					!strings.Contains(finding.Fix, test.hint)) {
				t.Errorf("%s: got %+v", name, finding)
			}
			if finding.Check == "node-local-answers" && finding.Context == "west" && finding.Result != Skipped {
				t.Errorf("a cluster without a cache: got %+v", finding)
			}
		}
	}
}

// TestNodeCachesAreAsked where there are any, and nowhere else.
func TestNodeCachesAreAsked(t *testing.T) {
	set := newSet(func(east, _ *Cluster) { east.NodeCaches, _ = coredns.Caches(t.Context(), cached(passes)) })
	clusters := make([]*cluster.Cluster, len(set.Clusters)) // the others are not used
	clusters[0] = cached(passes)
	set.AskNodeCaches(t.Context(), clusters, progress.Teller{Out: io.Discard, Results: io.Discard, Timeout: time.Minute})
	for i, c := range set.Clusters {
		if got := c.NodeCacheAnswers; got.Asked != (i == 0) || (got.Error == nil) != (i != 0) {
			t.Errorf("%s: got %+v", c.Context, got)
		}
	}
	if err := set.Clusters[0].NodeCacheAnswers.Error; !strings.Contains(err.Error(), "no pod of DaemonSet kube-system/node-local-dns is ready") {
		t.Errorf("got %v", err)
	}
}

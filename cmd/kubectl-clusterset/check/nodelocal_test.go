// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/coredns"
)

// hidden is the Corefile of a cache that does not pass the zone, passed one that does.
const (
	hidden = "cluster.local:53 {\n    bind 169.254.20.10\n    forward . 10.96.0.2\n}\n.:53 {\n    forward . /etc/resolv.conf\n}\n"
	passed = hidden + "clusterset.local {\n forward . 10.96.0.2\n}\n"
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

// TestNodeLocalCacheThatHidesTheZone reads the DaemonSet and its Corefile, and has the server block to add.
func TestNodeLocalCacheThatHidesTheZone(t *testing.T) {
	const want = "Add this server block with `kubectl --context east -n kube-system edit configmap node-local-dns`.\n" +
		"clusterset.local:53 {\n    errors\n    cache {\n        success 9984 5\n        denial 9984 1\n    }\n    reload\n    bind 169.254.20.10\n    forward . 10.96.0.2 {\n        force_tcp\n    }\n}"
	for corefile, want := range map[string]string{hidden: want, passed: ""} {
		set := newSet(func(east, _ *Cluster) {
			east.Deployment = installed("registry.k8s.io/coredns/coredns:v1.12.2")
			east.NodeCaches = nodeCaches(t.Context(), cached(corefile))
		})
		if got := hint(set, "node-local-dns"); got != want {
			t.Errorf("got %q, want %q with\n%s", got, want, corefile)
		}
	}
}

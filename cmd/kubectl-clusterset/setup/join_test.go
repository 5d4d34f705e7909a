// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterset-dns/clusterset-dns/cmd/kubectl-clusterset/cluster"
)

// TestJoinBegins once all controllers have run, because it usually follows their installation. It verifies API servers: over an
// unverified connection, another could give its own certificate authority, and read the token.
func TestJoinBegins(t *testing.T) {
	for want, insecure := range map[string]bool{
		"timed out after 1m0s: context admin@east: clusterset-controller has never run": false,
		"context admin@west: your kubeconfig has insecure-skip-tls-verify, so":          true,
	} {
		east, west := joined("east"), joined("west")
		east.Config, west.Config = &rest.Config{}, &rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: insecure}}
		must(t, east.Kube.CoordinationV1().Leases(system).Delete(t.Context(), cluster.HeartbeatLease, metav1.DeleteOptions{}))
		synctest.Test(t, func(t *testing.T) {
			if err := Join(t.Context(), quiet(time.Minute, east, west)); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
		if actions := west.Kube.(*fake.Clientset).Actions(); insecure && len(actions) > 0 {
			t.Errorf("it asked %v", actions)
		}
	}
}

// TestJoinDryRun: a dry run says what it would do, and writes nothing. The Secret of west has the pod ranges of its nodes, and
// the networks of the nodes if the reader is in another network; the ranges of east are unknown. The address of east is of no
// use to west.
func TestJoinDryRun(t *testing.T) {
	for network, want := range map[string]string{"": "10.1.0.0/24", "b": "10.1.0.0/24,192.0.2.0/24"} {
		east, west := joined("east"), joined("west")
		local := map[string]string{"": "https://localhost:6443", "b": "https://[::1]:6443"}[network]
		east.Config, west.Config = &rest.Config{Host: local}, &rest.Config{Host: "https://10.0.0.2:6443"}
		_, created := west.Kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
			Spec:   corev1.NodeSpec{PodCIDRs: []string{"10.1.0.0/24"}},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "192.0.2.7"}}},
		}, metav1.CreateOptions{})
		_, patched := east.Kube.CoordinationV1().Leases(system).Patch(t.Context(), cluster.HeartbeatLease, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"{\"network.clusterset-dns.github.io\":\"%s\"}"}}}`,
				cluster.PropertiesAnnotation, network), metav1.PatchOptions{})
		var progress, results bytes.Buffer
		o := quiet(time.Minute, east, west)
		o.DryRun, o.Teller = true, cluster.Teller{Out: &progress, Results: &results, Timeout: time.Minute}
		must(t, created, patched, Join(t.Context(), o))
		if results.String() != "west would get a credential to read east (dry run)\neast would get a credential to read west (dry run)\n" {
			t.Errorf("got\n%s", results.String())
		}
		for _, text := range []string{
			"because its nodes have no spec.podCIDRs: `kubectl --context admin@west -n clusterset-dns annotate secret member-east " +
				"clusterset-dns.github.io/cidrs=<ranges of its pods>`",
			"context admin@east: " + local + " is a loopback address",
		} {
			if !strings.Contains(progress.String(), text) || strings.Count(progress.String(), "loopback") != 1 {
				t.Errorf("no %q in\n%s", text, progress.String())
			}
		}
		secret, err := east.Kube.CoreV1().Secrets(system).Get(t.Context(), "member-west", metav1.GetOptions{}) // the fake knows no dry runs
		if got := secret.Annotations[cluster.CIDRsAnnotation]; err != nil || got != want {
			t.Errorf("network %q: ranges %q, want %q; %v", network, got, want, err)
		}
		for _, c := range o.Clusters {
			for _, action := range c.Kube.(*fake.Clientset).Actions() {
				if patch, writes := action.(clienttesting.PatchActionImpl); writes && patch.GetResource().Resource != "leases" &&
					len(patch.GetPatchOptions().DryRun) == 0 {
					t.Errorf("a dry run writes %s %s", patch.GetResource().Resource, patch.GetName())
				}
			}
		}
	}
}
